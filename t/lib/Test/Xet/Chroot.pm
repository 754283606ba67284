package Test::Xet::Chroot;

# Copyright (C) the ngx_http_xet_module authors

# Runs a small Debian system in its own namespaces, of the release that the
# test runs on.  Processes of this system are invisible outside, have no
# network route to the outside, and end when it stops.
#
#     my $c = Test::Xet::Chroot->new();
#     plan(skip_all => $c->{lacks}) if $c->{lacks};
#
#     my ($status, $out, @debs) = $c->packages(1);
#                                      our packages, of that revision, as
#                                      files that only this test uses
#     $c->fetch('nginx', ...);         packages and their dependencies, to
#                                      install later without a network
#     $c->start();                     (online => 1): with the network of
#                                      the system, and without services
#     my ($status, $out) = $c->run([ 'nginx', '-t' ]);
#     $c->stop();
#
# "chroot" of the build folder keeps the result of debootstrap and the packages
# that were fetched.  With online => 1 apt also stores packages there, so it
# must be called within locked().  Each test works on a layer above that folder
# and discards the layer.

use warnings;
use strict;

use Fcntl qw/ :flock /;
use File::Path qw/ make_path remove_tree /;
use File::Temp qw/ tempdir /;

use Test::Xet::Process qw/
	alive build_dir children reap root run_command slurp spawn spew
	wait_for
/;

my %env = (
	PATH => '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
	LANG => 'C.UTF-8',
	HOME => '/root',
	DEBIAN_FRONTEND => 'noninteractive',
);

sub new {
	my ($class) = @_;

	my $self = bless { owner => $$ }, $class;

	$self->{lacks} = $self->lacks();
	return $self if $self->{lacks};

	$self->{base} = build_dir() . "/chroot/$self->{codename}";
	$self->{lacks} = $self->bootstrap();

	return $self;
}

# Returns the reason why no chroot is possible here; undef if it is possible.

sub lacks {
	my ($self) = @_;

	my $release = slurp('/etc/os-release', 1) // '';

	return 'needs root' if $> != 0;
	return 'needs Debian' if $release !~ /^ID=debian$/m;

	($self->{codename}) = $release =~ /^VERSION_CODENAME=(\w+)$/m;
	($self->{version}) = $release =~ /^VERSION_ID="?(\d+)"?$/m;
	return 'needs a release of Debian' unless $self->{version};

	for my $program (qw/ debootstrap unshare nsenter /) {
		return "needs $program"
			unless grep { -x "$_/$program" } split(/:/, $env{PATH});
	}

	my $dir = tempdir('xet-ns-XXXXXX', TMPDIR => 1, CLEANUP => 1);

	mkdir("$dir/$_") for qw/ a b c d /;

	# in a chroot the root is not a mount point, so it can't be made
	# private; if no mount is shared, it need not be

	my @ways = ('private', (slurp('/proc/self/mountinfo', 1) // 'shared:')
		=~ /\bshared:/ ? () : 'unchanged');

	for my $way (@ways) {
		$self->{unshare} = [ 'unshare', '--mount', '--propagation',
			$way, '--pid', '--fork', '--ipc', '--uts' ];

		my ($status) = run_command([ @{ $self->{unshare} }, '--net',
			'sh', '-ec', 'mount -t overlay overlay -o lowerdir=' .
			"$dir/a,upperdir=$dir/b,workdir=$dir/c $dir/d\n"
			. "mount -t proc proc $dir/a" ]);

		return undef unless $status;
	}

	return 'needs namespaces and overlay mounts';
}

# Returns the package sources of this system, as "uri suite component".

sub sources {
	return grep { length } map { /^(\S+ \S+ \S+) Debian$/ ? $1 : '' }
		split(/\n/, `apt-get indextargets --format \\
			'\$(REPO_URI) \$(RELEASE) \$(COMPONENT) \$(ORIGIN)' \\
			'Created-By: Packages' 2>/dev/null`);
}

# Runs code under a lock: only one process at a time creates the base or fetches
# into it.

sub locked {
	my ($self, $do) = @_;

	make_path(build_dir() . '/chroot');
	open(my $lock, '>', "$self->{base}.lock")
		or die "$self->{base}.lock: $!\n";
	flock($lock, LOCK_EX) or die "flock: $!\n";

	return $do->();
}

sub bootstrap {
	my ($self) = @_;

	return $self->locked(sub {
		return undef if -d $self->{base};

		my @sources = sources() or return 'needs lists of packages';
		my ($mirror) = (grep { / \Q$self->{codename}\E / } @sources,
			'')[0] =~ /^(\S+)/ or return 'needs a mirror of Debian';

		my $dir = "$self->{base}.new";

		remove_tree($dir);

		my ($status, $out) = run_command([ 'debootstrap',
			'--variant=minbase', $self->{codename}, $dir, $mirror ],
			timeout => 600, env => \%env);

		return "debootstrap: " . (split(/\n/, $out))[-1] if $status;

		$self->configure($dir, @sources);

		($status, $out) = $self->outside($dir, 'apt-get', 'update');
		return "apt-get update: $out" if $status;

		rename($dir, $self->{base}) or die "$dir: $!\n";

		return undef;
	});
}

# Configures the chroot to use the network of the system, and dpkg not to sync
# files, because the layer is discarded.

sub configure {
	my ($self, $dir, @sources) = @_;

	my $acquire = join('', map { "$_\n" } grep {
		/^Acquire::/ && !/^Acquire::(?:Languages|Gzip|Compress)/
	} split(/\n/, `apt-config dump`));

	spew("$dir/etc/apt/sources.list", join('', map { "deb $_\n" }
		@sources));
	spew("$dir/etc/apt/apt.conf.d/99test", $acquire
		. qq(APT::Install-Recommends "false";\n)
		. qq(Binary::apt::APT::Keep-Downloaded-Packages "true";\n));
	spew("$dir/etc/dpkg/dpkg.cfg.d/test", "force-unsafe-io\n");

	for my $file (qw! /etc/resolv.conf /etc/hosts !) {
		spew("$dir$file", slurp($file, 1) // '');
	}
}

# Runs a command in a folder, with the network of the system.

sub outside {
	my ($self, $dir, @command) = @_;

	return run_command([ @{ $self->{unshare} }, 'sh', '-c',
		'd=$1; shift; mount --rbind /dev "$d/dev"; '
		. 'mount -t proc proc "$d/proc"; exec chroot "$d" "$@"',
		'sh', $dir, @command ], env => \%env, timeout => 600);
}

# Builds our packages.  All tests build in one folder, so that each file is
# compiled once.  One test builds at a time, and the next one may replace the
# packages.

sub packages {
	my ($self, $revision) = @_;

	my $out_dir = build_dir() . '/deb-test';

	$self->{debs} ||= tempdir('xet-debs-XXXXXX', TMPDIR => 1,
		CLEANUP => 1);
	make_path($out_dir);
	open(my $lock, '>', "$out_dir.lock") or die "$out_dir.lock: $!\n";
	flock($lock, LOCK_EX) or die "flock: $!\n";

	my ($status, $out) = run_command([ 'sh',
		root() . '/docker/package.sh' ],
		env => { OUT => $out_dir, KEEP => 1, REVISION => $revision,
			DEB_BUILD_OPTIONS => 'noautodbgsym' },
		timeout => 600);

	my @built = grep { m!/(?:libnginx-mod-http-xet|xet-tools)_! }
		split(/\n/, $out);

	return ($status, $out) if $status;

	system('cp', '-p', @built, $self->{debs}) == 0 or die "cp: $?\n";

	return ($status, $out,
		map { s!.*/!$self->{debs}/!r } @built);
}

# Fetches packages and their dependencies into the base, as files.

sub fetch {
	my ($self, @packages) = @_;

	my ($status, $out) = $self->locked(sub {
		return $self->outside($self->{base}, 'apt-get', 'install',
			'-y', '--download-only', '-o', 'Debug::NoLocking=1',
			@packages);
	});

	return $status ? "apt-get: $out" : undef;
}

# Starts the namespaces.  Their first process only waits, and reaps processes
# whose parents have ended.  Without runlevel, packages start services only if a
# policy allows it.

sub start {
	my ($self, %o) = @_;

	my $dir = tempdir('xet-chroot-XXXXXX', TMPDIR => 1);

	chmod(0755, $dir);
	$self->{dir} = $dir;
	$self->{root} = "$dir/root";
	mkdir("$dir/$_") for qw/ root upper work out /;

	$self->{online} = $o{online};
	$self->{pid} = spawn([ @{ $self->{unshare} }, '--kill-child',
		$o{online} ? () : '--net', 'sh', '-e', '-c', << 'END',
hostname chroot
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" \
    "$2/root"
cd "$2/root"
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
mount -t proc proc proc
mount -t tmpfs tmpfs run
mount --bind "$2/out" mnt
[ "$3" = 0 ] || mount --bind "$1/var/cache/apt/archives" \
    var/cache/apt/archives
printf '#!/bin/sh\nexit %s\n' "$3" > usr/sbin/policy-rc.d
chmod 755 usr/sbin/policy-rc.d
[ "$3" != 0 ] || perl -MSocket -e '
    socket(S, AF_INET, SOCK_DGRAM, 0) or die "socket: $!\n";
    $if = pack("a16 s x22", "lo", 1);
    ioctl(S, 0x8914, $if) or die "lo: $!\n"'
touch mnt/ready
while :; do sleep 1; done
END
		'sh', $self->{base}, $dir, $o{online} ? 101 : 0 ],
		output => "$dir/log");

	wait_for(30, sub { -e "$dir/out/ready" || !alive($self->{pid}) });
	die "no chroot: ", slurp("$dir/log"), "\n" unless -e "$dir/out/ready";

	($self->{init}) = children($self->{pid});
}

# Runs a command inside; returns status and output.  Accepts "timeout" of
# run_command()'s options, and "env" in addition to the default environment.

sub run {
	my ($self, $command, %o) = @_;

	return run_command([ $self->inside(%o), @$command ],
		timeout => $o{timeout} || 120);
}

# Returns the command prefix that runs a command inside.

sub inside {
	my ($self, %o) = @_;

	my %e = (%env, %{ $o{env} || {} });

	return ('nsenter', '-t', $self->{init}, '-m', '-r', '-p', '-i', '-u',
		$self->{online} ? () : '-n', '--', 'chroot', $self->{root},
		'env', '-i',
		map { "$_=$e{$_}" } sort keys %e);
}

# Runs a text as a shell script.

sub sh {
	my ($self, $text, %o) = @_;

	return $self->run([ 'sh', '-euc', $text ], %o);
}

# Writes a file that is visible as /mnt/NAME inside the chroot; returns this
# path.

sub put {
	my ($self, $name, $content) = @_;

	spew("$self->{dir}/out/$name", $content);
	chmod(0644, "$self->{dir}/out/$name");

	return "/mnt/$name";
}

# Returns the outside path of an inside path.

sub path {
	my ($self, $path) = @_;

	return "/proc/$self->{init}/root$self->{root}$path";
}

sub stop {
	my ($self) = @_;

	return unless $self->{pid};

	kill('KILL', $self->{init}) if $self->{init};
	kill('KILL', $self->{pid});
	reap($self->{pid}, 20);
	delete $self->{pid};
	remove_tree($self->{dir});
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $!);

	$self->stop() if $self->{owner} == $$;
}

1;

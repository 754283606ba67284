#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# docker/Dockerfile and docker/entrypoint.sh, without a container engine: the
# test runs the steps of the Dockerfile in separate folders.  It starts the
# entrypoint as the user of the Dockerfile, without capabilities; only the
# volume and /tmp are writable.  Tested: tokens by default, a graceful stop, a
# restart with the same data, an edge, an external PostgreSQL.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Chroot;
use Test::Xet::HTTP;
use Test::Xet::Process qw/
	alive build_dir children free_port reap root run_command slurp spawn
	spew wait_for
/;

use File::Path qw/ make_path remove_tree /;
use File::Temp qw/ tempdir /;
use IO::Socket::INET ();

# --------------------------------------------------------------------------
# the Dockerfile: its stages, each with its instructions

sub parse {
	my ($text) = @_;

	my (@stages, %args);

	$text =~ s/^\s*#.*\n//gm;
	$text =~ s/\\\n/ /g;

	for my $line (grep { /\S/ } split(/\n/, $text)) {
		my ($what, $rest) = $line =~ /^([A-Z]+)\s+(.*?)\s*$/
			or die "Dockerfile: $line\n";

		if ($what eq 'ARG' && !@stages) {
			my ($name, $value) = $rest =~ /^(\w+)=(\w+)$/
				or die "Dockerfile: $line\n";
			$args{$name} = $value;

		} elsif ($what eq 'FROM') {
			my ($from, $name) = $rest =~ /^(\S+) AS (\w+)$/
				or die "Dockerfile: $line\n";
			push @stages, { from => $from, name => $name,
				steps => [] };

		} else {
			die "Dockerfile: nothing to add to: $line\n"
				unless @stages;
			push @{ $stages[-1]{steps} }, [ $what, $rest ];
		}
	}

	return (\%args, @stages);
}

my ($args, @stages) = parse(slurp(root() . '/docker/Dockerfile'));

is(join(' ', map { "$_->{name}:$_->{from}" } @stages),
	'build:debian:${DEBIAN}-slim server:debian:${DEBIAN}-slim all:server',
	'stages');
like($args->{DEBIAN}, qr/^1[23]$/, 'a Debian that we build for');

# --------------------------------------------------------------------------
# the steps; an unknown instruction fails the test

my %images;
my $context = tempdir('xet-context-XXXXXX', TMPDIR => 1, CLEANUP => 1);

sub in_image {
	my ($image, $command, %o) = @_;

	return $image->{chroot}->run($command, env => $image->{env}, %o);
}

sub copy {
	my ($image, $rest) = @_;

	my $from = $context;
	my $mode;

	while ($rest =~ s/^--(\w+)=(\S+)\s+//) {
		if ($1 eq 'from') {
			$from = $images{$2}{chroot}->path('');
		} elsif ($1 eq 'chmod') {
			$mode = oct($2);
		} else {
			return "COPY --$1";
		}
	}

	my ($source, $to) = $rest =~ /^(\S+) (\S+)$/ or return "COPY $rest";
	my @files = glob("$from/$source") or return "COPY $rest: no file";

	# a relative target is below WORKDIR; if the source is a folder, its
	# contents are copied

	$to = "$image->{dir}/$to" unless $to =~ m!^/!;
	$to = $image->{chroot}->path($to);
	make_path($to =~ m!/\.?$! ? $to : $to =~ s![^/]+$!!r);

	for my $file (@files) {
		system('cp', '-rT', '--preserve=mode,timestamps', $file,
			-d $file || $to !~ m!/\.?$! ? $to
			: $to . ($file =~ m!([^/]+)$!)[0]) == 0
			or return "cp: $?";
		chmod($mode, $to) or return "chmod: $!" if $mode;
	}

	return undef;
}

sub step {
	my ($image, $what, $rest) = @_;

	if ($what eq 'RUN') {
		return 'RUN as a user' if $image->{user} ne 'root';

		my ($status, $out) = $image->{chroot}->locked(sub {
			return in_image($image, [ 'sh', '-c',
				"cd $image->{dir} && $rest" ], timeout => 900);
		});

		return $status ? "RUN $rest: $out" : undef;
	}

	return copy($image, $rest) if $what eq 'COPY';

	if ($what eq 'ENV') {
		my ($name, $value) = $rest =~ /^(\w+)=(\S+)$/
			or return "ENV $rest";
		$image->{env}{$name} = $value;

	} elsif ($what eq 'WORKDIR') {
		$image->{dir} = $rest;
		make_path($image->{chroot}->path($rest));

	} elsif ($what eq 'USER') {
		$image->{user} = $rest;

	} elsif ($what eq 'HEALTHCHECK') {
		($image->{health}) = $rest =~ /\sCMD (.*)$/
			or return "HEALTHCHECK $rest";

	} elsif ($what eq 'ENTRYPOINT') {
		$image->{entrypoint} = [ $rest =~ /"([^"]*)"/g ];

	} elsif ($what =~ /^(?:VOLUME|EXPOSE|STOPSIGNAL|LABEL)$/) {
		$image->{lc $what} = $rest;

	} else {
		return "an instruction that is not known: $what";
	}

	return undef;
}

like(step({}, 'ONBUILD', 'RUN true'), qr/not known/, 'others are noticed');

# Copies the tree without the files that Dockerfile.dockerignore excludes.

sub make_context {
	my %ignored = map { $_ => 1 } split(/\n/, slurp(root()
		. '/docker/Dockerfile.dockerignore'));

	ok($ignored{build} && $ignored{'.git'}, 'build results are ignored');

	opendir(my $dir, root()) or die;

	for my $name (grep { !/^\.\.?$/ && !$ignored{$_} } readdir($dir)) {
		system('cp', '-a', root() . "/$name", "$context/$name") == 0
			or die "cp: $?\n";
	}
}

sub make_image {
	my ($stage) = @_;

	my $image = $images{$stage->{from}};

	if ($image) {
		$image->{name} = $stage->{name};

	} else {
		my $c = Test::Xet::Chroot->new();

		plan(skip_all => $c->{lacks}) if $c->{lacks};
		$c->start(online => 1);

		# files that the Debian images omit

		spew($c->path('/etc/dpkg/dpkg.cfg.d/docker'), join('', map {
			"path-exclude /usr/share/$_/*\n" } qw/ doc man /));

		$image = { chroot => $c, env => {}, dir => '/',
			user => 'root' };
	}

	$images{$stage->{name}} = $image;

	for my $step (@{ $stage->{steps} }) {
		my $why = step($image, @$step);

		is($why, undef, "$stage->{name}: $step->[0] "
			. substr($step->[1], 0, 40)) or BAIL_OUT($why);
	}
}

my $lacks = Test::Xet::Chroot->new()->{lacks};

if ($lacks) {
	done_testing();
	diag("the steps were not run: $lacks");
	exit(0);
}

make_context();
make_image($_) for @stages;
delete($images{build})->{chroot}->stop();

my $image = $images{all};
my ($uid, $gid) = $image->{user} =~ /^([1-9]\d*):([1-9]\d*)$/;

ok($uid, 'a user by number, which is not root') or BAIL_OUT($image->{user});
is($image->{volume}, '/data', 'its volume');
is($image->{stopsignal}, 'SIGTERM', 'its signal');

# --------------------------------------------------------------------------
# a container: no capabilities, and read-only except /tmp and its volume

my $script = << 'END';
r=$1; volume=$2; shift 2
mount --rbind "$r" "$r"
mount --bind "$volume" "$r/data"
mount -o remount,bind,ro "$r"
mount -t tmpfs tmpfs "$r/tmp"
exec chroot "$r" setpriv --no-new-privs --inh-caps=-all --bounding-set=-all \
    "$@"
END

sub container {
	my ($volume, %env) = @_;

	my $command = delete($env{command}) || $image->{entrypoint};
	my $c = $image->{chroot};
	my $log = delete($env{log}) || "$volume.log";
	my %e = (%{ $image->{env} }, %env);

	spew($log, '');
	chown($uid, $gid, $log, $volume);

	my @inside = $c->inside();
	my ($enter) = grep { $inside[$_] eq 'chroot' } 0 .. $#inside;

	my $pid = spawn([ @inside[0 .. $enter - 1], 'unshare', '--mount',
		'--propagation', 'unchanged', 'sh', '-ec', $script, 'sh',
		$c->{root}, $volume,
		"--reuid=$uid", "--regid=$gid", '--clear-groups',
		@inside[$enter + 2 .. $#inside],
		(map { "$_=$e{$_}" } sort keys %e),
		@$command ], output => $log);

	return { pid => $pid, log => $log, port => $e{PORT}, env => \%e,
		main => sub { (children($pid))[0] } };
}

# Runs a command in a running container, like "docker exec".

sub inside {
	my ($box, @command) = @_;

	my $main = $box->{main}->() or return (-1, 'it does not run');

	return run_command([ 'nsenter', '-t', $main, '-m', '-p', '-r', '--',
		'setpriv', "--reuid=$uid", "--regid=$gid", '--clear-groups',
		'env', '-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
		(map { "$_=$box->{env}{$_}" } sort keys %{ $box->{env} }),
		@command ], timeout => 60);
}

sub healthy {
	my ($box) = @_;

	return (inside($box, 'sh', '-c', $image->{health}))[0] == 0;
}

sub up {
	my ($name, $box) = @_;

	wait_for(90, sub { healthy($box) || !alive($box->{pid}) });

	ok(alive($box->{pid}) && healthy($box), "$name: healthy")
		or diag(slurp($box->{log}));
}

sub ended {
	my ($box, $time) = @_;

	my $status = reap($box->{pid}, $time || 60);

	return defined $status ? $status >> 8 : 'still there';
}

sub stop {
	my ($name, $box) = @_;

	kill('TERM', $box->{main}->());
	is(ended($box), 0, "$name: stops, with 0") or diag(slurp($box->{log}));
}

sub ask {
	my ($box, $method, $uri, $headers, $body) = @_;

	return eval { Test::Xet::HTTP->request($box->{port}, $method, $uri,
		$headers || {}, $body) } || { status => 0, body => $@ };
}

my $tmp = tempdir('xet-volumes-XXXXXX', DIR => '/tmp', CLEANUP => 1);

chmod(0755, $tmp);

sub volume {
	my ($name) = @_;

	mkdir("$tmp/$name", 0750);

	return "$tmp/$name";
}

my $data = join('', map { pack('N', $_ * 2654435761 % 4294967296) }
	1 .. 300000);
my $files = '/api/v1/files';

# tokens are the default

my $box = container(volume('one'), PORT => free_port());

up('first', $box);

my $r = ask($box, 'PUT', $files, {}, $data);

is($r->{status}, 401, 'without a token');

my ($status, $token) = inside($box, qw! xet token --key
	/data/keys/token.key --scope write --repo team !);

is($status, 0, 'a token') or diag($token);
chomp($token);

my %auth = (Authorization => "Bearer $token");

$r = ask($box, 'PUT', $files, { %auth }, $data);
is($r->{status}, 200, 'PUT') or diag($r->{body});

my ($hash) = $r->{body} =~ /"hash":"(\w{64})"/;

sub there {
	my ($name, $box, %auth) = @_;

	my $r = ask($box, 'GET', "$files/$hash", { %auth });

	is($r->{status}, 200, "$name: GET");
	ok($r->{body} eq $data, "$name: the file");
}

there('first', $box, %auth);

# a second container on the same volume would destroy the database

my $second = container("$tmp/one", log => "$tmp/second.log",
	PORT => free_port());

is(ended($second), 1, 'second: does not start');
like(slurp($second->{log}), qr!/data is in use by another container!,
	'second: says so');
there('second', $box, %auth);

# no process runs as root, keys are private, nothing else is writable

my @all = ($box->{main}->());

for (my $i = 0; $i < @all; $i++) {
	push @all, children($all[$i]);
}

my %users = map { (slurp("/proc/$_/status", 1) // '')
	=~ /^Uid:\s+(\d+)\s+(\d+)/m ? ($1 => 1, $2 => 1) : () } @all;

is(join(' ', sort keys %users), $uid, 'all of ' . @all . ' are of the user');
is(`find $tmp/one/keys -type f -perm /077`, '', 'keys are for nobody else');
isnt((inside($box, 'touch', '/usr/x'))[0], 0, 'the rest is read-only');

my $log = slurp($box->{log});

like($log, qr!"PUT /api/v1/files HTTP/1\.1" 200 !, 'the log is the output');
unlike($log, qr/\Q$token\E/, 'no token in it');

# an upload in flight completes

my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
	PeerPort => $box->{port}) or die "connect: $!\n";
my $more = 'more' . $data;
my $half = length($more) / 2;

$socket->print("PUT $files HTTP/1.1\r\nHost: x\r\nContent-Length: "
	. length($more) . "\r\nAuthorization: Bearer $token\r\n\r\n"
	. substr($more, 0, $half));
$socket->flush();
ok(wait_for(20, sub {
	grep { (readlink($_) // '') =~ m!/data/store/tmp/! }
		map { glob("/proc/$_/fd/*") } @all;
}), 'an upload is under way');
kill('TERM', $box->{main}->());
ok(wait_for(20, sub { !ask($box, 'GET', '/api/health/live')->{status} }),
	'TERM: nobody else is let in');
ok(alive($box->{pid}), 'TERM: it waits');
$socket->print(substr($more, $half));
$socket->flush();

my $answer = '';

eval {
	local $SIG{ALRM} = sub { die "no answer\n" };
	alarm(60);
	$answer .= $_ while defined($_ = $socket->getline());
	alarm(0);
};

like($answer, qr!^HTTP/1\.1 200 .*"hash":"\w{64}"!s,
	'TERM: the upload in flight succeeded');
is(ended($box), 0, 'TERM: exit code');

# a new container starts on the same volume

my $keys = `cd $tmp/one/keys && sha256sum *`;

$box = container(volume('one'), PORT => free_port(),
	URL_BASE => 'https://xet.example', LIMITS => 'on');
up('again', $box);
is(`cd $tmp/one/keys && sha256sum *`, $keys, 'again: the same keys');
there('again', $box, %auth);
$r = ask($box, 'GET', "/api/v1/reconstructions/$hash", { %auth });
like($r->{body}, qr!"url":"https://xet\.example/xorbs/!, 'URL_BASE');

# an edge in front of the server, with one of the three keys

mkdir("$tmp/edge-keys");
spew("$tmp/edge-keys/url.key", slurp("$tmp/one/keys/url.key"));
make_path(volume('edge') . '/keys');
rename("$tmp/edge-keys/url.key", "$tmp/edge/keys/url.key") or die;
chmod(0444, "$tmp/edge/keys/url.key");

my $edge = container(volume('edge'), PORT => free_port(),
	EDGE => "127.0.0.1:$box->{port}", CACHE_SIZE => '1g');

up('edge', $edge);
there('edge', $edge, %auth);
is(ask($edge, 'PUT', $files, {}, $data)->{status}, 401,
	'edge: without a token');

my ($url) = $r->{body} =~ m!"url":"https://xet\.example(/xorbs/[^"]*)"!;
my ($range) = $r->{body} =~ /"url_range":\{"start":(\d+)/;

$r = ask($edge, 'GET', $url =~ s/\\u0026/&/gr, { Range => 'bytes='
	. ($url =~ /[?&]r=(\d+-\d+)/)[0] });
is($r->{status}, 206, 'edge: a data URL') or diag($r->{body});
ok(scalar(() = `find $tmp/edge/cache -type f`), 'edge: has cached it');
stop('edge', $edge);

# when PostgreSQL dies, the container ends

my ($postgres) = grep { (slurp("/proc/$_/cmdline", 1) // '')
	=~ m!/bin/postgres\0! } children($box->{main}->());

ok($postgres, 'PostgreSQL is there');
kill('KILL', $postgres) if $postgres;
is(ended($box), 1, 'PostgreSQL is killed: the end, with 1');

# with AUTH=off everyone has full access

$box = container(volume('one'), PORT => free_port(), AUTH => 'off');
up('AUTH=off', $box);
there('AUTH=off', $box);
like(slurp($box->{log}), qr/^xet-server: AUTH=off: /m, 'AUTH=off: is said');

# a server with an external database, which requires a password

my ($out, $pg_port) = ('', free_port());

($status, $out) = inside($box, 'psql', '-X', '-q', '-h', '/tmp/xet/pg', '-U',
	'xet', '-d', 'xet', '-c', "ALTER ROLE xet PASSWORD 'p\\a:ss'");
is($status, 0, 'a password') or diag($out);
stop('AUTH=off', $box);

spew("$tmp/one/pg/pg_hba.conf", "host xet xet 127.0.0.1/32 scram-sha-256\n");

my $elsewhere = container("$tmp/one", command => [ 'sh', '-c',
	'exec /usr/lib/postgresql/*/bin/postgres -D /data/pg '
	. "-c listen_addresses=127.0.0.1 -c port=$pg_port "
	. '-c unix_socket_directories=/tmp' ]);

mkdir(volume('server') . '/secret');
spew("$tmp/server/secret/password", "p\\a:ss\n");

$box = container("$tmp/server", PORT => free_port(), AUTH => 'off',
	POSTGRES => "host=127.0.0.1 port=$pg_port dbname=xet user=xet",
	POSTGRES_PASSWORD_FILE => '/data/secret/password');

# the store does not belong to this database

wait_for(90, sub {
	$r = ask($box, 'GET', '/api/health');
	return $r->{body} =~ /storage_unavailable/ || !alive($box->{pid});
});

is($r->{status}, 503, 'elsewhere: another store');
like($r->{body}, qr/storage_unavailable/, 'elsewhere: with the reason');
stop('elsewhere, another store', $box);

rename("$tmp/one/store", "$tmp/server/store.one") or die;
remove_tree("$tmp/server/store");
rename("$tmp/server/store.one", "$tmp/server/store") or die;

$box = container("$tmp/server", %{ $box->{env} });
up('elsewhere', $box);
there('elsewhere', $box);
ok(!(grep { (slurp("/proc/$_/cmdline", 1) // '') =~ /postgres/ }
	children($box->{main}->())), 'elsewhere: no PostgreSQL of its own');
stop('elsewhere', $box);
kill('INT', $elsewhere->{main}->());
is(ended($elsewhere), 0, 'elsewhere: PostgreSQL ends');

# invalid settings are reported, and nothing starts

for (
	[ 'a URL', { URL_BASE => 'http://x;' }, qr/character in URL_BASE/ ],
	[ 'a database', { POSTGRES => 'host=x"; y' }, qr/in POSTGRES/ ],
	[ 'AUTH', { AUTH => 'none' }, qr/AUTH must be token or off/ ],
	[ 'a port', { PORT => 'http' }, qr/PORT and GRACE must be num/ ],
	[ 'an edge without a key', { EDGE => '127.0.0.1:1', KEYS => '/usr/k' },
		qr!/usr/k/url\.key is missing! ])
{
	my ($name, $env, $why) = @$_;

	my $box = container(volume('two'), PORT => free_port(), %$env);

	is(ended($box), 1, "$name: does not start");
	like(slurp($box->{log}), $why, "$name: says so");
}

$image->{chroot}->stop();

done_testing();

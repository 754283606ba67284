package Test::Xet::Share;

# Copyright (C) the ngx_http_xet_module authors

# Mounts a folder as an NFS client would see it: a FUSE file system over the
# folder that notices changes by other machines as late as such a client does.
#
#     Test::Xet::Net->enter();          # private mounts
#
#     my $share = Test::Xet::Share->new($folder, $mount);
#
#     $share->stale(2);                 # the next 2 opens or reads: ESTALE
#     $share->seen('negative');         # number of outdated ENOENT results
#     $share->stop();
#
# It imitates these properties of NFS:
#
#     - close-to-open: an opened file has the bytes that it had when another
#       machine last closed it; its size may be older
#     - a name that was not found stays missing for "negative" seconds, even
#       after another machine has created it, unless the folder has changed
#       and is opened again
#     - attributes and names are cached for "cache" seconds
#     - if another machine removes a file, a process that has it open gets
#       ESTALE; if this machine removes it, the file stays open, under
#       another name
#     - no files without a name (O_TMPFILE)
#
# It does not imitate the protocol, locks, delegations, or a server that
# restarts after a crash.

use warnings;
use strict;

use Errno qw/ EIO ENOENT ESTALE /;
use Fcntl qw/ O_ACCMODE O_CREAT O_EXCL O_RDWR SEEK_SET /;
use POSIX ();
use Time::HiRes qw/ time /;

use Test::Xet::Process qw/ own owned reap slurp spew wait_for /;

# Returns the reason why no share is possible here; '' if it is possible.

sub lacks {
	return 'no /dev/fuse' unless -w '/dev/fuse';
	return 'no Fuse.pm, of libfuse-perl' unless eval { require Fuse; 1 };

	return '';
}

# Options:
#
#     cache     seconds that attributes and names are cached, 30
#     negative  seconds that missing names are cached, 30
#     hard      1: files that are removed while open are not renamed

sub new {
	my ($class, $folder, $mount, %o) = @_;

	my $self = bless {
		folder => $folder, mount => $mount, cache => 30,
		negative => 30, hard => 0, %o, control => "$mount.control"
	}, $class;

	mkdir($mount);
	spew("$self->{control}.$_", 0) for qw/ stale negative /;

	my $device = (stat($mount))[0];
	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0) {
		$SIG{$_} = 'DEFAULT' for qw/ ALRM INT TERM PIPE /;
		alarm(0);
		eval { $self->serve() };
		print STDERR "# a share has ended: $@\n" if $@;
		POSIX::_exit(1);
	}

	own($self->{pid} = $pid);

	wait_for(20, sub { (stat($mount))[0] != $device })
		or die "$mount is not mounted\n";

	return $self;
}

sub path { return $_[0]->{mount} }
sub stale { spew("$_[0]->{control}.stale", $_[1]) }
sub seen { return slurp("$_[0]->{control}.$_[1]") }

sub stop {
	my ($self) = @_;

	return unless $self->{pid};

	system('umount', '-l', $self->{mount});
	kill('TERM', $self->{pid});
	reap($self->{pid}, 5);
	$self->{pid} = undef;
}

# --------------------------------------------------------------------------
# the file system, in a process of its own

sub serve {
	my ($self) = @_;

	my %missing;		# path => time of its ENOENT
	my %changed;		# folder => mtime at its last opening

	my $real = sub { return "$self->{folder}$_[0]" };
	my $told = sub { return $_[0] ? 0 : -($! + 0 || EIO) };
	my $is = sub { delete $missing{$_[0]} };

	# changes by this machine are visible to it immediately

	my $do = sub {
		my ($name, $code) = @_;

		return sub { $is->($_) for grep { defined && m!^/! } @_;
			return $told->($code->(@_)) };
	};

	my $older = sub {
		my ($path) = @_;

		return 0 unless $missing{$path}
			&& time() - $missing{$path} < $self->{negative};

		spew("$self->{control}.negative",
			slurp("$self->{control}.negative") + 1)
			if -e $real->($path);

		return 1;
	};

	my $fails = sub {
		my $n = slurp("$self->{control}.stale");

		return 0 unless $n;
		spew("$self->{control}.stale", $n - 1);

		return 1;
	};

	my $open = sub {
		my ($path, $flags) = @_;

		return -ESTALE if $path =~ m!/xorbs/! && $fails->();

		sysopen(my $fh, $real->($path), $flags & O_ACCMODE)
			or return -($! + 0);

		return (0, $fh);
	};

	require Fuse;

	Fuse::main(
		mountpoint => $self->{mount}, threaded => 0,
		mountopts => join(',', 'allow_other',
			"attr_timeout=$self->{cache}",
			"entry_timeout=$self->{cache}", 'negative_timeout=0',
			$self->{hard} ? 'hard_remove' : ()),

		getattr => sub {
			my ($path) = @_;

			return -ENOENT if $older->($path);

			my @stat = lstat($real->($path));

			$missing{$path} = time() if !@stat && $! == ENOENT;

			return @stat ? @stat : -($! + 0);
		},
		opendir => sub {
			my ($path) = @_;

			my $now = (Time::HiRes::stat($real->($path)))[9]
				or return -($! + 0);

			# close-to-open consistency of a folder

			if (($changed{$path} // 0) != $now) {
				delete $missing{$_} for grep {
					m!^\Q$path\E/[^/]*\z! } keys %missing;
			}

			$changed{$path} = $now;

			return (0, $path);
		},
		readdir => sub {
			my ($path) = @_;

			opendir(my $dir, $real->($path)) or return -($! + 0);

			return (readdir($dir), 0);
		},
		releasedir => sub { return 0 },
		fsyncdir => sub { return 0 },
		open => $open,
		create => sub {
			my ($path, $mode, $flags) = @_;

			$is->($path);
			sysopen(my $fh, $real->($path), ($flags & O_EXCL)
				| O_RDWR | O_CREAT, $mode) or return -($! + 0);

			return (0, $fh);
		},
		read => sub {
			my ($path, $size, $offset, $fh) = @_;

			return -ESTALE if $path =~ m!/xorbs/! && $fails->();
			return -ESTALE unless (stat($fh))[3];

			sysseek($fh, $offset, SEEK_SET);
			defined sysread($fh, my $data, $size)
				or return -($! + 0);

			return $data;
		},
		write => sub {
			my ($path, $data, $offset, $fh) = @_;

			return -ESTALE unless (stat($fh))[3];

			sysseek($fh, $offset, SEEK_SET);

			return syswrite($fh, $data) // -($! + 0);
		},
		release => sub { close($_[2]) if ref $_[2]; return 0 },
		flush => sub { return 0 },
		fsync => sub { return $_[2]->sync() ? 0 : -($! + 0) },
		mkdir => $do->(mkdir => sub {
			mkdir($real->($_[0]), $_[1]) }),
		rmdir => $do->(rmdir => sub { rmdir($real->($_[0])) }),
		unlink => $do->(unlink => sub { unlink($real->($_[0])) }),
		link => $do->(link => sub {
			link($real->($_[0]), $real->($_[1])) }),
		rename => $do->(rename => sub {
			rename($real->($_[0]), $real->($_[1])) }),
		chmod => sub { $told->(chmod($_[1], $real->($_[0]))) },
		chown => sub { $told->(chown($_[1], $_[2], $real->($_[0]))) },
		truncate => sub { $told->(truncate($real->($_[0]), $_[1])) },
		utimens => sub { $told->(utime($_[1], $_[2], $real->($_[0]))) },
		statfs => sub {
			return (255, 1e6, 1e6, 1e7, 1e7, 4096);
		},
	);
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $@, $!);

	$self->stop() if $self->{pid} && owned($self->{pid});
}

1;

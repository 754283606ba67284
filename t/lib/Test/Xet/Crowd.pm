package Test::Xet::Crowd;

# Copyright (C) the ngx_http_xet_module authors

# Runs background processes of a test.  Each process repeats one operation until
# it is told to stop, and records its results in files.
#
#     use parent 'Test::Xet::Crowd';
#
#     my $self = $class->SUPER::new(files => { history => $path });
#
#     $self->fork_off(sub { $_[0]->tell('history', "a line") }, 'writer1');
#     ...
#     my $line = $self->any_line('history');
#     $self->quit();

use warnings;
use strict;

use Fcntl qw/ SEEK_SET /;
use POSIX ();

use Test::Xet::Bytes;
use Test::Xet::Process qw/ spew /;

# Options:
#
#     files   { name => path }: creates these files, empty; each name becomes
#              a member of the object, as all other options do

sub new {
	my ($class, %o) = @_;

	my $files = delete $o{files};
	my $self = bless { pids => [], serial => 0, owner => $$, %o, %$files },
		$class;

	spew($_, '') for values %$files;

	return $self;
}

# Starts a process that repeats $run; {who} of its object is the name $who.

sub fork_off {
	my ($self, $run, $who) = @_;

	my $pid = fork() // die "fork: $!\n";

	if ($pid) {
		push @{ $self->{pids} }, $pid;
		return;
	}

	my $parent = getppid();
	my $ended;

	# end only between two requests, so that every acknowledged upload is
	# recorded

	$SIG{TERM} = sub { $ended = 1 };
	$SIG{ALRM} = 'DEFAULT';
	alarm(0);
	srand($$);

	$self->{who} = $who;

	eval {
		while (!$ended && getppid() == $parent) {
			$run->($self);
		}
	};

	print STDERR "# a process of the load: $@" if $@;
	POSIX::_exit($@ ? 1 : 0);
}

sub quit {
	my ($self) = @_;

	CORE::kill('TERM', $_) for @{ $self->{pids} };
	waitpid($_, 0) for splice(@{ $self->{pids} });
}

# Returns a name that no other process uses.

sub fresh {
	my ($self) = @_;

	return ($self->{who} // 'main') . "-$$-" . ++$self->{serial};
}

# Appends a line to a file that other processes append to as well.

sub tell {
	my ($self, $where, $line) = @_;

	$line =~ tr/\n/ /;
	$line .= "\n";

	open(my $out, '>>', $self->{$where}) or die "$!\n";
	syswrite($out, $line) == length($line) or die "$!\n";
}

# Returns a random line of the file; undef if it has no complete line.

sub any_line {
	my ($self, $where) = @_;

	my $size = -s $self->{$where} or return undef;

	open(my $in, '<', $self->{$where}) or die "$!\n";
	seek($in, int(rand($size)), SEEK_SET);
	scalar <$in>;

	my $line = <$in>;

	return undef if !defined $line || $line !~ /\n\z/;

	chomp($line);

	return $line;
}

# Returns a body whose bytes and length derive from the name.

sub body {
	my ($name, $most) = @_;

	my $seed = 0;

	$seed = ($seed * 31 + ord) & 0xffffff for split(//, $name);

	return $name . random_bytes($seed, 3000 + $seed % $most);
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $@, $!);

	$self->quit() if $$ == $self->{owner};
}

1;

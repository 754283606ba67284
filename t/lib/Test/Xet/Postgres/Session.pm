package Test::Xet::Postgres::Session;

# Copyright (C) the ngx_http_xet_module authors

# Keeps a psql session open, to hold a transaction or a lock.

use warnings;
use strict;

use IO::Handle;
use IO::Select;
use POSIX ();
use Time::HiRes qw/ time /;

use Test::Xet::Process qw/ own owned patience reap /;

sub new {
	my ($class, $pg, %o) = @_;

	pipe(my $in, my $to) or die "pipe: $!\n";
	pipe(my $from, my $out) or die "pipe: $!\n";

	my $pid = fork();
	die "fork() failed: $!\n" unless defined $pid;

	if ($pid == 0) {
		open(STDIN, '<&', $in) or POSIX::_exit(126);
		open(STDOUT, '>&', $out) or POSIX::_exit(126);
		open(STDERR, '>&', $out) or POSIX::_exit(126);

		exec { "$pg->{bin}/psql" } 'psql', '-XAtq', '-h', $pg->{dir},
			'-U', $o{user} || 'postgres', '-d', $o{db} || 'xet'
			or POSIX::_exit(127);
	}

	own($pid);
	close($in);
	close($out);

	$to->autoflush(1);

	return bless { pid => $pid, to => $to, from => $from, n => 0 },
		$class;
}

# Sends statements without waiting for them.

sub send {
	my ($self, $statement) = @_;

	local $SIG{PIPE} = 'IGNORE';
	my $mark = 'done-' . ++$self->{n};

	print { $self->{to} } "$statement;\n\\echo $mark\n";

	return $mark;
}

# Returns the output of the last statements; undef if they do not finish in
# time.

sub wait {
	my ($self, $timeout) = @_;

	my $end = time() + patience($timeout // 10);
	my $mark = "done-$self->{n}";
	my $select = IO::Select->new($self->{from});

	$self->{buffer} //= '';

	while ($self->{buffer} !~ /^\Q$mark\E\n/m) {
		my $left = $end - time();

		return undef if $left <= 0 || !$select->can_read($left);

		sysread($self->{from}, $self->{buffer}, 65536,
			length($self->{buffer}))
			or die "psql ended: $self->{buffer}\n";
	}

	$self->{buffer} =~ s/\A(.*?)^\Q$mark\E\n//ms;
	my $output = $1;

	$output =~ s/^done-\d+\n//mg;
	chomp($output);

	return $output;
}

sub run {
	my ($self, $statement, $timeout) = @_;

	$self->send($statement);
	my $output = $self->wait($timeout);

	die "\"$statement\" takes too long\n" unless defined $output;
	die "$output\n" if $output =~ /^(ERROR|FATAL):/m;

	return $output;
}

sub unlock {
	my ($self) = @_;

	return unless $self->{pid};

	$self->run('COMMIT') if $self->{to};
	$self->close();
}

# Ends the session, which rolls back an open transaction.

sub close {
	my ($self) = @_;

	my $pid = delete $self->{pid} or return;

	CORE::close(delete $self->{to});

	if (!defined reap($pid, 2)) {
		kill('KILL', $pid);
		reap($pid, 5);
	}
}

sub DESTROY {
	my ($self) = @_;

	return unless $self->{pid} && owned($self->{pid});

	local ($?, $@, $!);
	$self->close();
}

1;

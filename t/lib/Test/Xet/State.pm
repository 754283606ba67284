package Test::Xet::State;

# Copyright (C) the ngx_http_xet_module authors

# Reports descriptors and memory of the workers, and checks that a test leaves
# no files, descriptors or sessions.  Methods of Test::Xet.

use warnings;
use strict;

use File::Find ();
use Test::More ();

use Test::Xet::Process qw/ slurp wait_for /;

sub files_below {
	my ($dir) = @_;

	my @files;

	File::Find::find({ no_chdir => 1, wanted => sub {
		push @files, substr($_, length($dir) + 1) if -f $_;
	} }, $dir) if -d $dir;

	return sort @files;
}

# fds() returns the number of descriptors that a process has open, rss() its
# resident memory in KiB.  The default process is the first worker.

sub fds {
	my ($self, $pid) = @_;

	return scalar keys %{ Test::Xet::Process::fds(
		$pid // ($self->worker_pids())[0]) };
}

sub rss {
	my ($self, $pid) = @_;

	return Test::Xet::Process::rss($pid // ($self->worker_pids())[0]);
}

# Records the workers' descriptors.  At the end of the test there may be no new
# ones, except for sessions of PostgreSQL; the test must close its own
# connections before the end.

sub fds_mark {
	my ($self) = @_;

	# in this order: the socket of a session exists before the server lists
	# the session

	$self->{marks_sessions} = { map { $_ => 1 } $self->sessions() };
	$self->{marks} = { map { $_ => $self->own_fds($_) }
		$self->worker_pids() };
}

# Returns all descriptors except connections to the bucket, of which the server
# keeps a limited number for reuse.

sub own_fds {
	my ($self, $pid) = @_;

	my $fds = Test::Xet::Process::fds($pid);
	my $s3 = $self->s3() or return $fds;
	my %ports = map { sprintf('%04X', $_) => 1 } $s3->port(),
		map { /:(\d+)/ ? $1 : () } grep { defined }
			@{ $self->{o} }{qw/ s3_endpoint s3_server /};
	my %bucket;

	for (split(/\n/, slurp('/proc/net/tcp', 1) // '')) {
		my ($peer, $inode) = (split ' ')[2, 9];

		$bucket{"socket:[$inode]"} = 1
			if $ports{$peer =~ s/.*://r};
	}

	return { map { $_ => $fds->{$_} } grep { !$bucket{$fds->{$_}} }
		keys %$fds };
}

# Returns the present sessions of the server; none if it can't be queried.

sub sessions {
	my ($self) = @_;

	my $pg = $self->{pg} || ($self->{beside} || {})->{pg};

	return $pg && $pg->pid() ? eval { $pg->backends() } : ();
}

# --------------------------------------------------------------------------
# checks at the end of a test, called by check() of Test::Xet

sub check_fds {
	my ($self) = @_;

	my $marks = delete $self->{marks} or return;
	my $then = $self->{marks_sessions};
	my @grown;

	# compares sockets and sessions one by one: their numbers alone would be
	# misleading if a psql session was about to end

	wait_for(5, sub {
		my $sessions = 0;
		@grown = ();

		for my $pid (keys %$marks) {
			my $before = $marks->{$pid};
			my $now = $self->own_fds($pid);
			my %old = map { $_ => 1 } values %$before;

			$sessions += grep { /^unix/ && !$old{$_} }
				values %$now;
			push @grown, [ $pid, $now ]
				if grep({ !/^unix/ } values %$now)
				> grep({ !/^unix/ } values %$before);
		}

		push @grown, map { [ $_, $self->own_fds($_) ] }
			keys %$marks if $sessions > grep { !$then->{$_} }
				$self->sessions();

		return !@grown;
	});

	Test::More::ok(!@grown, 'no descriptors left open');

	for (@grown) {
		my ($pid, $now) = @$_;

		Test::More::diag("worker $pid: $_ is $now->{$_}")
			for grep { !exists $marks->{$pid}{$_} }
			sort { $a <=> $b } keys %$now;
	}
}

# Checks that no file of the store is open after the last request.  nginx itself
# reports sockets left open when it stops.

sub check_files {
	my ($self) = @_;

	my $store = $self->store();
	my @open;

	wait_for(5, sub {
		@open = map { my $pid = $_;
			map { "worker $pid: $_" } grep {
				m!^\Q$store\E/! || / \(deleted\)$/
			} values %{ Test::Xet::Process::fds($pid) }
		} $self->worker_pids(all => 1);

		return !@open;
	});

	Test::More::ok(!@open, 'no files left open')
		or Test::More::diag(join("\n", @open));
}

1;

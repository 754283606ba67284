package Test::Xet::Delay;

# Copyright (C) the ngx_http_xet_module authors

# Runs a proxy to PostgreSQL that delays the responses, as a network between two
# machines would.
#
#     my $way = Test::Xet::Delay->new($pg->socket_dir(), $t->dir() . '/way');
#
#     ... 'host=' . $way->dir() ...
#     $way->seconds(0.05);              # the delay of all later responses
#     $way->lose('hub_delete');         # drop the response to this statement
#     $way->lost();                     # whether a response was dropped:
#                                       # PostgreSQL has run the statement, and
#                                       # the session ends

use warnings;
use strict;

use parent qw/ Test::Xet::Program /;

use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw/ time /;

use Test::Xet::Process qw/ root slurp spawn spew wait_for /;

my $name = '.s.PGSQL.5432';

sub new {
	my ($class, $to, $dir) = @_;

	my $self = bless { dir => $dir, delay => "$dir/delay" }, $class;

	# nginx's workers may run as another user

	mkdir($dir) or die "$dir: $!\n";
	chmod(0755, $dir);
	$self->seconds(0);

	$self->{pid} = spawn([ $^X, '-I' . root() . '/t/lib', "-M$class", '-e',
		"$class\::serve(\@ARGV)", "$dir/$name", "$to/$name",
		$self->{delay} ], output => "$dir/log", death => 'KILL');

	wait_for(10, sub { -S "$dir/$name" })
		or die 'no way: ' . slurp("$dir/log", 1);

	return $self;
}

sub dir { return $_[0]->{dir} }

sub lose {
	my ($self, $statement) = @_;

	unlink("$self->{delay}.lost");
	spew("$self->{delay}.lose.new", $statement);
	rename("$self->{delay}.lose.new", "$self->{delay}.lose") or die "$!\n";
}

sub lost { return -e "$_[0]->{delay}.lost" }

sub seconds {
	my ($self, $seconds) = @_;

	spew("$self->{delay}.new", $seconds);
	rename("$self->{delay}.new", $self->{delay}) or die "$!\n";
}

# --------------------------------------------------------------------------
# the proxy process: data that is not yet due waits in a queue of its connection

sub serve {
	my ($path, $to, $delay) = @_;

	my $server = IO::Socket::UNIX->new(Local => "$path.new", Listen => 64)
		or die "$path: $!\n";
	my $all = IO::Select->new($server);
	my (%of, @due);

	chmod(0777, "$path.new");
	rename("$path.new", $path) or die "$path: $!\n";
	$SIG{PIPE} = 'IGNORE';

	for ( ;; ) {
		my $wait = @due ? $due[0]{at} - time() : 1;

		for my $socket ($all->can_read($wait > 0 ? $wait : 0)) {
			if ($socket != $server) {
				if (loses(\%of, $socket, $delay)) {
					my $other = $of{$socket}{to};

					$all->remove($socket, $other);
					close($_) for $socket, $other;
					@due = grep { $_->{to} != $socket
						&& $_->{to} != $other } @due;
					next;
				}

				push @due, heard($all, $of{$socket}, $socket,
					slurp($delay), $of{$of{$socket}{to}},
					$delay);
				next;
			}

			my $client = $server->accept() or next;
			my $host = IO::Socket::UNIX->new(Peer => $to) or next;

			$of{$client} = { to => $host };
			$of{$host} = { to => $client, slow => 1 };
			$all->add($client, $host);
		}

		@due = sort { $a->{at} <=> $b->{at} } @due;

		while (@due && $due[0]{at} <= time()) {
			my $due = shift @due;

			defined $due->{data} ? pass(@$due{qw/ to data /})
				: shutdown($due->{to}, 1);
		}
	}
}

# Returns whether the received data is the response to drop: the first response
# after a message to the server that names the statement.

sub loses {
	my ($of, $socket, $delay) = @_;

	my $way = $of->{$socket};

	return 0 if !$way->{slow};
	return 0 if !$way->{drop};

	spew("$delay.lost", '');

	return 1;
}

sub asks {
	my ($way, $data, $delay) = @_;

	return if !-e "$delay.lose";

	my $name = slurp("$delay.lose");

	# in a Bind message: an empty portal, then the name

	return if index($data, "\0$name\0") < 0;

	unlink("$delay.lose");
	$way->{drop} = 1;
}

# Queues received data with its due time, never before earlier data.

sub heard {
	my ($all, $way, $socket, $delay, $peer, $file) = @_;

	my $at = time() + ($way->{slow} ? $delay : 0);
	my $n = sysread($socket, my $data, 65536);

	asks($peer, $data, $file) if $n && !$way->{slow};

	$all->remove($socket) if !$n;

	$at = $way->{last} + 1e-6 if $at <= ($way->{last} // 0);
	$way->{last} = $at;

	return { at => $at, to => $way->{to}, data => $n ? $data : undef };
}

sub pass {
	my ($socket, $data) = @_;

	while (length($data)) {
		my $n = syswrite($socket, $data) or return;

		substr($data, 0, $n, '');
	}
}

1;

package Test::Xet::Net;

# Copyright (C) the ngx_http_xet_module authors

# Simulates machines by network namespaces with one address each, on a bridge in
# a namespace that the test process has entered.  The machines are invisible
# outside, and end with the test.
#
#     use Test::Xet::Net;
#
#     Test::Xet::Net->enter();        # call this first; may skip the test
#
#     my $net = Test::Xet::Net->new();
#     my $machine = $net->machine();
#     my $t = Test::Xet->new(net => $net);            # with PostgreSQL
#     my $other = Test::Xet->new(beside => $t, machine => $machine);
#
#     $machine->cut();                # no packet gets in or out
#     $machine->mend();
#
# All machines share folders and Unix sockets.  A service that is to be cut off
# must therefore be reached over the network: PostgreSQL with net =>, and
# Test::Xet::S3 with addr => $net->addr().

use warnings;
use strict;

use Test::More ();

use Test::Xet::Process qw/ reap run_command spawn wait_for /;

# The addresses can't conflict with other networks, because the namespace is
# private.

my $prefix = '10.77.0';

sub enter {
	if ($ENV{XET_TEST_NET}) {
		run('ip', 'link', 'set', 'lo', 'up');
		return;
	}

	my $lacks = lacks();

	Test::More::plan(skip_all => $lacks) if $lacks;

	local $ENV{XET_TEST_NET} = 1;

	exec('unshare', '--net', '--mount', '--', $^X, $0, @ARGV)
		or die "unshare: $!\n";
}

# Returns the reason why no machines are possible here; '' if they are possible.

sub lacks {
	return 'namespaces need root' if $> != 0;

	for my $program (qw/ ip ss unshare nsenter /) {
		return "no program $program" unless grep { -x "$_/$program" }
			split(/:/, $ENV{PATH});
	}

	my ($status, $out) = run_command([ 'unshare', '--net', '--mount', '--',
		'sh', '-c', 'ip link add x0 type bridge && ip link add x1 type'
		. ' veth peer name x2 && mount -t tmpfs none /mnt' ]);

	$out =~ s/\s+/ /g;

	return $status ? "this machine has no namespaces: $out" : '';
}

sub new {
	my ($class) = @_;

	die "enter() first\n" unless $ENV{XET_TEST_NET};

	run('ip', 'link', 'add', 'br0', 'type', 'bridge');
	run('ip', 'address', 'add', addr() . '/24', 'dev', 'br0');
	run('ip', 'link', 'set', 'br0', 'up');

	return bless { n => 1 }, $class;
}

# Returns the address of the test, of PostgreSQL and of object stores.

sub addr { return ref $_[0] && $_[0]->{addr} || "$prefix.1" }

# Returns the network for pg_hba.conf.

sub network { return "$prefix.0/24" }

sub machine {
	my ($self) = @_;

	my $n = ++$self->{n};
	my $pid = spawn([ 'unshare', '--net', '--', 'sleep', 'infinity' ],
		death => 'KILL');
	my $machine = bless { addr => "$prefix.$n", pid => $pid,
		link => "v$n" }, ref $self;

	my $ours = readlink('/proc/self/ns/net');

	wait_for(10, sub { (readlink("/proc/$pid/ns/net") // $ours) ne $ours })
		or die "no namespace\n";

	run('ip', 'link', 'add', "v$n", 'type', 'veth', 'peer', 'name', 'eth0',
		'netns', $pid);
	run('ip', 'link', 'set', "v$n", 'master', 'br0', 'up');

	for ([ 'address', 'add', "$prefix.$n/24", 'dev', 'eth0' ],
		[ 'link', 'set', 'eth0', 'up' ], [ 'link', 'set', 'lo', 'up' ])
	{
		run($machine->command(), 'ip', @$_);
	}

	return $machine;
}

# Returns the prefix of a command that is to run on the machine.

sub command {
	my ($self) = @_;

	return ('nsenter', "--net=/proc/$self->{pid}/ns/net", '--');
}

sub cut { run('ip', 'link', 'set', $_[0]->{link}, 'down') }
sub mend { run('ip', 'link', 'set', $_[0]->{link}, 'up') }

# Kills the machine's connections to a port of another machine.  The machine
# notices the end of these connections.

sub reset {
	my ($self, $other, $port) = @_;

	run($self->command(), 'ss', '-K', 'dst',
		$other->addr(), 'dport', '=', ":$port");
}

sub run {
	my ($status, $out) = run_command([ @_ ]);

	die "@_: $out\n" if $status;

	return $out;
}

1;

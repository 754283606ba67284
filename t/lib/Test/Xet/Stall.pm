package Test::Xet::Stall;

# Copyright (C) the ngx_http_xet_module authors

# System calls of a server that hang when a test wants it, and its clock:
# t/tools/stall.c, which is preloaded.

use warnings;
use strict;

use Test::Xet::Process qw/ root run_command spew wait_for /;

#     dir  of the test

sub new {
	my ($class, %o) = @_;

	my $self = bless { dir => "$o{dir}/stall", lib => "$o{dir}/stall.so" },
		$class;

	# workers, which may be nobody, leave marks in it

	mkdir($self->{dir});
	chmod(0777, $self->{dir});

	my ($status, $out) = run_command([ $ENV{CC} || 'cc', '-shared',
		'-fPIC', '-O', '-o', $self->{lib}, root() . '/t/tools/stall.c',
		'-ldl' ]);
	die "cannot build stall.c:\n$out\n" if $status;

	return $self;
}

sub env {
	my ($self) = @_;

	# ASan wants to be the first library, and may be linked in

	return { LD_PRELOAD => $self->{lib}, XET_STALL => $self->{dir},
		ASAN_OPTIONS => join(':', $ENV{ASAN_OPTIONS} || (),
			'verify_asan_link_order=0') };
}

# From now on calls hang, until release().

sub hold {
	my ($self, $call) = @_;

	unlink("$self->{dir}/$call.hangs");
	spew("$self->{dir}/$call", '');
}

# How many calls have begun to hang since hold(); waits for as many.

sub wait_held {
	my ($self, $call, $n, $timeout) = @_;

	return wait_for($timeout || 10, sub {
		(-s "$self->{dir}/$call.hangs" || 0) >= ($n || 1)
	});
}

# The clock of the server, as its time() has it: so many seconds ahead.

sub set_clock {
	my ($self, $seconds) = @_;

	spew("$self->{dir}/clock.new", "$seconds\n");
	rename("$self->{dir}/clock.new", "$self->{dir}/clock")
		or die "rename: $!\n";
}

sub release {
	my ($self, $call) = @_;

	unlink("$self->{dir}/$call");
}

1;

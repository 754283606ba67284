package Test::Xet::Stall;

# Copyright (C) the ngx_http_xet_module authors

# Makes system calls of a server hang and shifts its clock, by preloading
# t/tools/stall.c.

use warnings;
use strict;

use Test::Xet::Process qw/ root run_command spew wait_for /;

# Options:
#
#     dir  folder of the test

sub new {
	my ($class, %o) = @_;

	my $self = bless { dir => "$o{dir}/stall", lib => "$o{dir}/stall.so" },
		$class;

	# workers, which may run as nobody, create files in it

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

	# ASan must be the first library, and may be linked in

	return { LD_PRELOAD => $self->{lib}, XET_STALL => $self->{dir},
		ASAN_OPTIONS => join(':', $ENV{ASAN_OPTIONS} || (),
			'verify_asan_link_order=0') };
}

# Makes calls of this name hang until release().

sub hold {
	my ($self, $call) = @_;

	unlink("$self->{dir}/$call.hangs");
	spew("$self->{dir}/$call", '');
}

# Waits until at least n calls hang since hold(), by default one.

sub wait_held {
	my ($self, $call, $n, $timeout) = @_;

	return wait_for($timeout || 10, sub {
		(-s "$self->{dir}/$call.hangs" || 0) >= ($n || 1)
	});
}

# Sets the server's clock, as returned by time(), this number of seconds ahead.

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

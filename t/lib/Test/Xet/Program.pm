package Test::Xet::Program;

# Copyright (C) the ngx_http_xet_module authors

# Provides a base class for objects that own a program started by spawn(); {pid}
# is its process id.  The program ends on request, or when the object is
# destroyed.

use warnings;
use strict;

use Test::Xet::Process qw/ reap /;

sub stop {
	my ($self) = @_;

	my $pid = delete $self->{pid} or return;

	kill('TERM', $pid);
	reap($pid, 5);
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $@, $!);
	$self->stop();
}

1;

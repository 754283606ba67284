package Test::Xet::Program;

# Copyright (C) the ngx_http_xet_module authors

# An object with a program of its own, {pid} of spawn(): it ends when the object
# goes, or when it is told to.

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

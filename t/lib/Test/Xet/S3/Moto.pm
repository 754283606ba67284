package Test::Xet::S3::Moto;

# Copyright (C) the ngx_http_xet_module authors

# Runs moto, which is written in Python, behind t/clients/s3_moto.py, which adds
# the checks that moto lacks.  Objects are in memory, so the process is never
# stopped: to simulate an outage, it closes its port and resets all connections.

use warnings;
use strict;

use parent qw/ Test::Xet::S3 /;

use IO::Socket::INET;

use Test::Xet::Process qw/ build_dir root spew wait_for /;

sub python {
	return build_dir() . '/s3/moto/bin/python';
}

sub lacks {
	return -x python() ? '' : 'not installed, run t/clients/setup.sh';
}

sub prepare {
	my ($self) = @_;

	$self->write_keys();
}

sub write_keys {
	my ($self) = @_;

	spew("$self->{dir}/keys", "[test]\naws_access_key_id = $self->{key}\n"
		. "aws_secret_access_key = $self->{secret}\n"
		. ($self->{token} ? "aws_session_token = $self->{token}\n"
			: '') . "[clock]\nseconds = "
		. ($self->{clock} || 0) . "\n");
	chmod(0600, "$self->{dir}/keys");
}

sub command {
	my ($self) = @_;

	return ([ python(), root() . '/t/clients/s3_moto.py', $self->{port},
		"$self->{dir}/keys", $self->{region}, $self->{addr} ],
		env => { PYTHONDONTWRITEBYTECODE => 1,
			MOTO_DISABLE_GLOBAL_CORS => 1 });
}

sub rekey {
	my ($self) = @_;

	$self->write_keys();
	CORE::kill('HUP', $self->{pid});

	wait_for(10, sub {
		my $r = $self->request('GET', '');

		return $r->{status} == 200 || $r->{status} == 404;
	}) or die "moto does not take new keys\n";
}

# Sets moto's clock ahead by this number of seconds.

sub set_clock {
	my ($self, $seconds) = @_;

	$self->{clock} = $seconds;
	$self->rekey();
}

# Returns the time of moto's clock, for the test's own requests.

sub time {
	my ($self) = @_;

	return CORE::time() + ($self->{clock} || 0);
}

sub start {
	my ($self) = @_;

	return $self->SUPER::start() unless $self->{pid};

	CORE::kill('USR2', $self->{pid});
	$self->wait_answer();
}

sub stop {
	my ($self) = @_;

	return unless $self->{pid};

	CORE::kill('CONT', $self->{pid});
	CORE::kill('USR1', $self->{pid});

	wait_for(10, sub {
		return !IO::Socket::INET->new(PeerAddr => $self->{addr},
			PeerPort => $self->{port});
	}) or die "moto does not stop\n";
}

sub kill {
	my ($self) = @_;

	$self->stop();
}

1;

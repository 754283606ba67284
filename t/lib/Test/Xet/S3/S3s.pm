package Test::Xet::S3::S3s;

# Copyright (C) the ngx_http_xet_module authors

# Runs s3s-fs, which is written in Rust and stores objects in a folder.

use warnings;
use strict;

use parent qw/ Test::Xet::S3 /;

use Test::Xet::Process qw/ build_dir /;

sub program {
	return build_dir() . '/s3/s3s/bin/s3s-fs';
}

sub lacks {
	return -x program() ? '' : 'not installed, run "make s3-servers"';
}

sub prepare {
	my ($self) = @_;

	mkdir("$self->{dir}/data");
}

sub command {
	my ($self) = @_;

	return ([ program(), '--host', '127.0.0.1', '--port', $self->{port},
		'--domain', "localhost:$self->{port}",
		'--access-key', $self->{key}, '--secret-key', $self->{secret},
		"$self->{dir}/data" ]);
}

# Restarts s3s with a new key: it accepts only the key on its command line.

sub rekey {
	my ($self) = @_;

	return unless $self->{pid};

	$self->stop();
	$self->start();
}

1;

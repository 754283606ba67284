package Test::Xet::S3::Garage;

# Copyright (C) the ngx_http_xet_module authors

# Runs Garage, which is written in Rust, as a cluster of one node.

use warnings;
use strict;

use parent qw/ Test::Xet::S3 /;

use Test::Xet::Process qw/
	build_dir free_port run_command spew wait_for
/;

sub program {
	return build_dir() . '/s3/garage/bin/garage';
}

sub lacks {
	return -x program() ? '' : 'not installed, run "make s3-servers"';
}

sub prepare {
	my ($self) = @_;

	my $rpc = free_port();

	spew("$self->{dir}/garage.toml", <<"EOF");
metadata_dir = "$self->{dir}/meta"
data_dir = "$self->{dir}/data"
db_engine = "lmdb"
replication_factor = 1

rpc_bind_addr = "127.0.0.1:$rpc"
rpc_public_addr = "127.0.0.1:$rpc"
rpc_secret = "@{[ '5e' x 32 ]}"

[s3_api]
api_bind_addr = "127.0.0.1:$self->{port}"
s3_region = "$self->{region}"
root_domain = ".localhost"
EOF
}

sub command {
	my ($self) = @_;

	return ([ program(), '-c', "$self->{dir}/garage.toml", 'server',
		'--single-node' ], env => { RUST_LOG => 'garage=warn' });
}

sub ready {
	my ($self) = @_;

	# the node needs its layout in the cluster before it accepts a key

	wait_for(30, sub { return $self->add_key() })
		or die "garage takes no key:\n$self->{said}";
}

sub add_key {
	my ($self) = @_;

	return $self->say('key', 'import', '--yes', $self->{key},
		$self->{secret});
}

sub say {
	my ($self, @words) = @_;

	my ($status, $out) = run_command([ program(), '-c',
		"$self->{dir}/garage.toml", @words ]);

	$self->{said} = $out;

	return $status == 0;
}

# Creates the bucket with a garage command.  If an S3 request created the
# bucket, only the key of that request could use the bucket's name.

sub make_bucket {
	my ($self) = @_;

	$self->say('bucket', 'create', $self->{bucket})
		&& $self->allow() or die "garage: $self->{said}";
}

sub allow {
	my ($self) = @_;

	return $self->say('bucket', 'allow', '--read', '--write', '--owner',
		$self->{bucket}, '--key', $self->{key});
}

sub rekey {
	my ($self) = @_;

	$self->add_key() or die "garage: $self->{said}";

	# fails if the test has dropped the bucket

	$self->allow();

	$self->say('key', 'delete', '--yes', $self->{old_key})
		or die "garage: $self->{said}";
}

1;

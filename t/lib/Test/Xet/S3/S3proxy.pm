package Test::Xet::S3::S3proxy;

# Copyright (C) the ngx_http_xet_module authors

# Runs s3proxy, which is written in Java and stores objects in a folder.  It
# takes the bucket name either from the path or from the host; here from the
# path.

use warnings;
use strict;

use parent qw/ Test::Xet::S3 /;

use Test::Xet::Process qw/ build_dir spew /;

sub jar {
	return build_dir() . '/s3/s3proxy/s3proxy.jar';
}

sub lacks {
	return !-f jar() ? 'not installed, run "make s3-servers"'
		: system('java -version > /dev/null 2>&1') ? 'no java' : '';
}

sub prepare {
	my ($self) = @_;

	mkdir("$self->{dir}/data");
	$self->write_conf();
}

sub write_conf {
	my ($self) = @_;

	spew("$self->{dir}/s3proxy.conf", <<"EOF");
s3proxy.endpoint=http://127.0.0.1:$self->{port}
s3proxy.authorization=aws-v4
s3proxy.identity=$self->{key}
s3proxy.credential=$self->{secret}
s3proxy.v4-max-non-chunked-request-size=268435456
jclouds.provider=filesystem-nio2
jclouds.identity=none
jclouds.credential=none
jclouds.filesystem.basedir=$self->{dir}/data
EOF
	chmod(0600, "$self->{dir}/s3proxy.conf");
}

sub command {
	my ($self) = @_;

	return ([ 'java', '-Xmx1g', '-XX:+UseSerialGC',
		'-XX:TieredStopAtLevel=1', '-jar', jar(), '--properties',
		"$self->{dir}/s3proxy.conf" ]);
}

# Restarts s3proxy with a new key: it accepts only one key, which it reads at
# startup.

sub rekey {
	my ($self) = @_;

	my $running = $self->{pid};

	$self->stop();
	$self->write_conf();
	$self->start() if $running;
}

1;

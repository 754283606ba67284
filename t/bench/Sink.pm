package Sink;

# Copyright (C) the ngx_http_xet_module authors

# Runs s3_sink.pl with the interface of Test::Xet::S3.  This object store uses
# almost no CPU time, so a benchmark measures the cost of its client.

use warnings;
use strict;

use parent qw/ Test::Xet::S3 /;

use Cwd qw/ abs_path /;
use File::Basename qw/ dirname /;
use File::Path qw/ make_path /;

use Test::Xet::Process qw/ free_port /;

my $program = abs_path(dirname(__FILE__)) . '/s3_sink.pl';

sub new {
	my ($class, %o) = @_;

	my $self = bless {
		name => 'sink', bucket => 'xet', region => 'us-east-1',
		addr => '127.0.0.1', port => free_port(), owner => $$,
		dir => $o{dir},
		keep => $o{keep}
	}, $class;

	make_path($self->{dir});

	@$self{qw/ key secret /} = $self->new_keys();

	$self->write_credentials();
	$self->start();

	return $self;
}

sub command {
	my ($self) = @_;

	return ([ $^X, $program, $self->{port}, $self->{keep} // () ]);
}

1;

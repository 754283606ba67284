package Test::Xet::S3Fault;

# Copyright (C) the ngx_http_xet_module authors

# Runs a proxy that injects faults between a client and a store.  It changes no
# headers, not even Host, so signatures stay valid.
#
#     my $fault = Test::Xet::S3Fault->new($s3, dir => $t->dir() . '/fault');
#
#     ... $fault->endpoint() ...                  # for the client
#
#     my $rule = $fault->add(op => 'PUT', do => 'status', status => 503,
#         retry_after => 1, count => 2);
#     ...
#     is($fault->used($rule), 2);
#     $fault->clear();
#
# Options of new():
#
#     dir     folder of the proxy, removed with it
#     port    port of the proxy; by default a free one
#     tls     1: TLS; certificate() is the file to trust.  Or the files
#             { pem => ..., key => ... } of an existing certificate
#
# A rule applies to matching requests until it is used up or cleared.  If
# several rules match, the oldest applies:
#
#     op      a method, or an S3 operation: PutObject, UploadPart,
#             CopyObject, CompleteMultipartUpload, ListObjectsV2 ...; by
#             default any
#     match   Python regular expression for the target as it was sent
#     skip    number of matching requests that pass first
#     count   number of requests that fail; undef: all
#     do      the fault:
#
#       status   responds instead of the store, after the request: status
#                (500), S3 code, retry_after, body, headers => [ 'A: b' ].
#                early => 1: responds before the body, then closes.
#                done => 1: responds after the store has executed the request
#       drop     closes after the head; the store sees nothing
#       wait     waits ms before it sends anything to the store
#       hold     waits ms before the response, after the store is done.  With
#                free => 1, wait and hold end early when the rule is cleared
#       lost     closes after the store has responded, without a response
#       cut      closes within the body: in the middle, or after "at" bytes
#       stall    pauses at the same point for ms, then continues
#       flip     changes bits (mask) of the byte at that point
#       slow     forwards a body at rate bytes a second
#
#     way     the body to fault: answer (the response), or request
#     at      offset in that body, in bytes
#     reset   1: resets the connection instead of closing it

use warnings;
use strict;

use parent qw/ Test::Xet::Program /;

use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON::PP ();

use Test::Xet::Process qw/
	free_port patience reap root run_command slurp spawn wait_for
/;

sub new {
	my ($class, $s3, %o) = @_;

	my $self = bless { s3 => $s3, port => $o{port} || free_port(),
		dir => $o{dir} || tempdir(CLEANUP => 1) }, $class;

	make_path($self->{dir});
	$self->{tls} = ref($o{tls}) && $o{tls}{pem};
	$self->make_certificate() if $o{tls} && !ref($o{tls});

	my @tls = ref($o{tls}) ? @{ $o{tls} }{qw/ pem key /}
		: map { "$self->{dir}/tls.$_" } qw/ pem key /;
	my $control = "$self->{dir}/control";

	$self->{pid} = spawn([ 'python3', root() . '/t/clients/s3_fault.py',
		$self->{port}, $s3->port(), $control,
		$o{tls} ? @tls : () ],
		output => "$self->{dir}/fault.log", death => 'KILL');

	wait_for(20, sub {
		return $self->{socket} = IO::Socket::UNIX->new(
			Peer => $control);
	}) or die "no fault proxy: " . slurp("$self->{dir}/fault.log", 1);

	return $self;
}

sub make_certificate {
	my ($self) = @_;

	$self->{tls} = "$self->{dir}/tls.pem";

	my ($status, $out) = run_command([ 'openssl', 'req', '-x509',
		'-newkey', 'rsa:2048', '-nodes', '-days', 2, '-subj',
		'/CN=localhost', '-addext',
		'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout',
		"$self->{dir}/tls.key", '-out', $self->{tls} ]);

	die "openssl: $out\n" if $status;
}

sub port { return $_[0]->{port} }
sub host { return "127.0.0.1:$_[0]->{port}" }
sub certificate { return $_[0]->{tls} }

sub endpoint {
	my ($self) = @_;

	return ($self->{tls} ? 'https' : 'http') . "://127.0.0.1:$self->{port}";
}

sub say {
	my ($self, $command, %o) = @_;

	my $socket = $self->{socket};

	local $SIG{PIPE} = 'IGNORE';

	print $socket JSON::PP::encode_json({ %o, command => $command }), "\n";
	$socket->flush();

	my $line = <$socket>;

	die "the fault proxy ends: " . slurp("$self->{dir}/fault.log", 1)
		unless defined $line;

	my $result = JSON::PP::decode_json($line);

	die "$command: $result->{error}\n" if $result->{error};

	return $result;
}

my %known = map { $_ => 1 } qw/
	op match skip count do status code retry_after body headers early done
	ms way at reset mask rate free
/;

my %does = map { $_ => 1 } qw/
	status drop wait hold lost cut stall flip slow say
/;

sub add {
	my ($self, %rule) = @_;

	# a misspelled rule would never match, and the test would pass

	$known{$_} or die "no \"$_\" in a rule\n" for keys %rule;
	$does{$rule{do} // ''} or die "a rule has to do something\n";

	for (qw/ status skip count ms at mask rate early done reset free /) {
		$rule{$_} += 0 if defined $rule{$_};
	}

	return $self->say('add', %rule)->{rule};
}

# Clears one rule, or all rules.

sub clear {
	my ($self, $rule) = @_;

	$self->say('clear', $rule ? (rule => $rule) : ());
}

# Returns the number of requests that a rule has failed.

sub used {
	my ($self, $rule) = @_;

	return $self->say('used', rule => $rule)->{used};
}

# stats() returns counters since zero(): requests; op and method, as { name =>
# count }; bytes of bodies sent to and received from the store; connections,
# open connections, and their peak, most_open; busy, the requests in progress,
# and their peak, most_busy.

sub stats { return $_[0]->say('stats') }
sub zero { $_[0]->say('zero') }

# Returns the requests of an operation or method, or all requests, that have
# ended since zero(), as { method, op, target, headers, status, fault (number of
# the rule, or 0), sent, got, began, took }.

sub seen {
	my ($self, $op) = @_;

	return grep { !$op || $_->{op} eq $op || $_->{method} eq $op }
		@{ $self->say('seen')->{seen} };
}

# drop() resets all connections; close() also closes the port, and open() opens
# the port again.

sub drop { $_[0]->say('drop') }
sub close { $_[0]->say('close') }
sub open { $_[0]->say('open') }

1;

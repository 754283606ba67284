package Test::Xet::S3Fault;

# Copyright (C) the ngx_http_xet_module authors

# A proxy between a client and a store that breaks what it is told to break.
# Host and all other headers pass as they are, so signatures hold.
#
#     my $fault = Test::Xet::S3Fault->new($s3, dir => $t->dir() . '/fault');
#
#     ... $fault->endpoint() ...                  # what the client is given
#
#     my $rule = $fault->add(op => 'PUT', do => 'status', status => 503,
#         retry_after => 1, count => 2);
#     ...
#     is($fault->used($rule), 2);
#     $fault->clear();
#
# Options of new():
#
#     dir     of its own that goes with it
#     port    a free one
#     tls     1: speaks TLS; certificate() is the file to trust.  Or files
#             { pem => ..., key => ... } of a certificate that there is
#
# A rule holds for requests of a kind, until it was used or is cleared; of more
# than one that fit the oldest is used:
#
#     op      a method, or an operation of S3: PutObject, UploadPart,
#             CopyObject, CompleteMultipartUpload, ListObjectsV2 ...; any
#     match   a regular expression (of Python) of the target as it was sent
#     skip    so many that fit are left alone
#     count   so many are broken, undef: all
#     do      what happens:
#
#       status   answers for the store, when it has read the request: status
#                (500), code of S3, retry_after, body, headers => [ 'A: b' ].
#                early => 1 before it reads the body, and closes.  done => 1
#                when the store has done it
#       drop     closes when it has the head, the store sees nothing
#       wait     for ms, then goes on: nothing reaches the store before that
#       hold     the same with the answer, when the store has done it.  Both
#                end before that with free => 1 when the rule is cleared
#       lost     closes when the store has done it and has answered
#       cut      closes within the body, at half of it or at so many bytes
#       stall    stops there for ms, and goes on
#       flip     changes a bit (mask) of the byte there
#       slow     passes a body on with rate bytes a second
#
#     way     which body: answer, or request
#     at      bytes of it
#     reset   1: a connection ends by a reset, not in order

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

	# a rule that is misspelled breaks nothing, and a test would pass

	$known{$_} or die "no \"$_\" in a rule\n" for keys %rule;
	$does{$rule{do} // ''} or die "a rule has to do something\n";

	for (qw/ status skip count ms at mask rate early done reset free /) {
		$rule{$_} += 0 if defined $rule{$_};
	}

	return $self->say('add', %rule)->{rule};
}

# One of them, or all.

sub clear {
	my ($self, $rule) = @_;

	$self->say('clear', $rule ? (rule => $rule) : ());
}

# How often a rule has broken something.

sub used {
	my ($self, $rule) = @_;

	return $self->say('used', rule => $rule)->{used};
}

# Counts since zero(): requests; op and method, { name => how many }; bytes of
# bodies sent to and got from the store; connections, open, most_open (at once),
# and the same of requests: busy, most_busy.

sub stats { return $_[0]->say('stats') }
sub zero { $_[0]->say('zero') }

# Requests that have ended since zero(), of an operation or method, or all:
# { method, op, target, headers, status, fault (number of the rule, 0),
# sent, got, began, took }.

sub seen {
	my ($self, $op) = @_;

	return grep { !$op || $_->{op} eq $op || $_->{method} eq $op }
		@{ $self->say('seen')->{seen} };
}

# Resets all connections; closes the port, too, and opens it again.

sub drop { $_[0]->say('drop') }
sub close { $_[0]->say('close') }
sub open { $_[0]->say('open') }

1;

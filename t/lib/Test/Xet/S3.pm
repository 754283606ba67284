package Test::Xet::S3;

# Copyright (C) the ngx_http_xet_module authors

# Runs a private S3-compatible store on a port of 127.0.0.1, with a bucket.  All
# supported servers check signatures.
#
#     my $s3 = Test::Xet::S3->new(dir => $t->dir() . '/s3');
#
#     $s3->url();              # s3://xet
#     $s3->endpoint();         # http://127.0.0.1:12345
#     $s3->region();           # us-east-1
#     $s3->credentials();      # a file in the form of the AWS tools
#
#     $s3->put('a/b', 'data');
#     is($s3->get('a/b')->{body}, 'data');
#     is_deeply($s3->objects('a/'), { 'a/b' => 4 });
#
# Options of new():
#
#     server  moto, s3proxy, garage, s3s, radosgw; $XET_TEST_S3, else moto.
#             t/clients/setup.sh installs moto, "make s3-servers" the rest
#     dir     folder of the store, removed with it; by default its own
#     bucket  name of the bucket, xet
#     port    port of the server; by default a free one
#     addr    address of the server, 127.0.0.1; only moto supports another one
#     user    owner of the credentials file, if the test runs as root
#     start   0: does not start the server yet
#
# t/README.md has a table of what each server supports, printed by
# t/clients/s3_table.pl.

use warnings;
use strict;

use Digest::SHA qw/ sha256_hex /;
use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;

use Test::Xet::HTTP;
use Test::Xet::Process qw/
	build_dir free_port own patience reap slurp spawn spew wait_for
/;
use Test::Xet::Sigv4;

my %servers = (
	moto => 'Moto', s3proxy => 'S3proxy', garage => 'Garage',
	s3s => 'S3s', radosgw => 'Radosgw'
);

my $keys = 0;

sub names {
	return sort keys %servers;
}

sub new {
	my ($class, %o) = @_;

	my $name = $o{server} || $ENV{XET_TEST_S3} || 'moto';
	my $server = class_of($name);
	my $lacks = $server->lacks();

	die "$name: $lacks\n" if $lacks;

	my $self = bless {
		name => $name, bucket => $o{bucket} || 'xet',
		region => 'us-east-1', port => $o{port} || free_port(),
		addr => $o{addr} || '127.0.0.1',
		user => $o{user}, owner => $$,
		dir => $o{dir} || tempdir(CLEANUP => 1)
	}, $server;

	make_path($self->{dir});

	@$self{qw/ key secret /} = $self->new_keys();

	$self->prepare();
	$self->write_credentials();

	if ($o{start} // 1) {
		$self->start();
		$self->make_bucket();
	}

	return $self;
}

sub class_of {
	my ($name) = @_;

	my $server = $servers{$name} or die "no server $name\n";

	require "Test/Xet/S3/$server.pm";

	return "Test::Xet::S3::$server";
}

# Returns why the server is unavailable on this machine, '' if it is available.

sub missing {
	my ($class, $name) = @_;

	return class_of($name)->lacks();
}

sub name { return $_[0]->{name} }
sub port { return $_[0]->{port} }
sub addr { return $_[0]->{addr} }
sub host { return "$_[0]->{addr}:$_[0]->{port}" }
sub endpoint { return 'http://' . $_[0]->host() }
sub vhost_endpoint { return "http://localhost:$_[0]->{port}" }
sub bucket { return $_[0]->{bucket} }
sub url { return "s3://$_[0]->{bucket}" }
sub region { return $_[0]->{region} }
sub key { return $_[0]->{key} }
sub secret { return $_[0]->{secret} }
sub credentials { return "$_[0]->{dir}/credentials" }
sub pid { return $_[0]->{pid} }

# Returns new keys in a form that all servers accept; Garage has the strictest
# rules.

sub new_keys {
	my ($self) = @_;

	my $n = join('.', $$, CORE::time(), ++$keys);

	return ('GK' . substr(sha256_hex("key $n"), 0, 24),
		sha256_hex("secret $n"));
}

# Writes the client's credentials file with the valid keys, or with keys that a
# test gives.

sub write_credentials {
	my ($self, %o) = @_;

	my $file = $self->credentials();
	my $token = $o{token} // $self->{token};

	unlink("$file.new");
	spew("$file.new", '');
	chmod(0600, "$file.new");
	spew("$file.new", '[' . ($o{profile} // 'default') . "]\n"
		. 'aws_access_key_id = ' . ($o{key} // $self->{key}) . "\n"
		. 'aws_secret_access_key = '
		. ($o{secret} // $self->{secret}) . "\n"
		. ($token ? "aws_session_token = $token\n" : ''));

	chown((getpwnam($self->{user}))[2, 3], "$file.new")
		if $self->{user} && $> == 0;

	rename("$file.new", $file) or die "$file: $!\n";

	return $file;
}

# --------------------------------------------------------------------------
# the server process; each server's class defines how to run it, and may
# override all methods

#     lacks()    returns why the server can't run here
#     prepare()  writes the files that it needs, before its first start
#     command()  returns ([ program and arguments ], options of spawn())
#     ready()    called after the first start, to create keys and the like
#     rekey()    makes the keys in {key} and {secret} the only valid ones

sub time { return CORE::time() }
sub lacks { return '' }
sub prepare { }
sub ready { }

sub start {
	my ($self) = @_;

	return if $self->{pid};

	my ($command, %o) = $self->command();

	$self->{pid} = spawn($command, output => "$self->{dir}/server.log",
		death => 'KILL', %o);

	$self->wait_answer();
	$self->ready() unless $self->{was_ready}++;
}

# Waits for any response; a server that runs rejects an anonymous request with
# 403.

sub wait_answer {
	my ($self) = @_;

	wait_for(60, sub {
		die "$self->{name} ends, see $self->{dir}/server.log:\n"
			. $self->log() if $self->{pid}
			&& defined reap($self->{pid}, 0);

		my $r = eval { Test::Xet::HTTP->request($self->{port}, 'GET',
			'/', { Host => $self->host() }, undef,
			addr => $self->{addr}, timeout => 2) };

		return $r && $r->{status};
	}) or die "$self->{name} does not answer:\n" . $self->log();
}

sub log {
	my ($self) = @_;

	return substr(slurp("$self->{dir}/server.log", 1) // '', -4000);
}

# Stops the server gracefully, as a service manager does.

sub stop {
	my ($self) = @_;

	$self->end('TERM');
}

sub kill {
	my ($self) = @_;

	$self->end('KILL');
}

sub end {
	my ($self, $signal) = @_;

	my $pid = delete $self->{pid} or return;

	CORE::kill('CONT', $pid);
	CORE::kill($signal, $pid);

	return if defined reap($pid, 15);

	CORE::kill('KILL', $pid);
	reap($pid, 5);
}

# Makes the server hang: connections stay open, and get no response.

sub freeze {
	my ($self) = @_;

	CORE::kill('STOP', $_) for $self->processes();
}

sub thaw {
	my ($self) = @_;

	CORE::kill('CONT', $_) for $self->processes();
}

sub processes {
	my ($self) = @_;

	return $self->{pid} ? ($self->{pid}) : ();
}

# Sets new keys and makes the old ones invalid.  With file => 0 the client's
# file keeps the old keys.  With token, which only moto supports, the new keys
# are those of a session.

sub rotate {
	my ($self, %o) = @_;

	@$self{qw/ old_key old_secret /} = @$self{qw/ key secret /};
	@$self{qw/ key secret /} = $self->new_keys();

	die "$self->{name} has no sessions\n" if $o{token}
		&& $self->{name} ne 'moto';

	$self->{token} = $o{token};
	$self->rekey();
	$self->write_credentials() if $o{file} // 1;
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $@, $!);
	$self->end('KILL') if ($self->{owner} || 0) == $$;
}

# --------------------------------------------------------------------------
# requests that bypass any proxy between a client and the store

# Sends a request for an object, or for the bucket if the name is ''.  Options:
#
#     query, headers, body
#     port     port of a proxy to send the request to
#     bucket   another bucket, '' for none
#     presign  puts the signature into the URL; validity in seconds
#     vhost    1: the bucket is in the host name, xet.localhost, which curl
#              resolves to 127.0.0.1; the endpoint for that is vhost_endpoint()
#     http     { options of Test::Xet::HTTP }
#
# and those of Test::Xet::Sigv4.

sub request {
	my ($self, $method, $name, %o) = @_;

	my $r = $self->signed($method, $name, %o);

	return Test::Xet::HTTP->request($o{port} // $self->{port}, $method,
		$r->{target}, $r->{headers}, $o{body}, timeout => 30,
		addr => $self->{addr},
		%{ $o{http} || {} });
}

sub signed {
	my ($self, $method, $name, %o) = @_;

	my $bucket = $o{bucket} // $self->{bucket};
	my $host = $self->host();
	my $path = $name eq '' ? "/$bucket"
		: $bucket eq '' ? "/$name" : "/$bucket/$name";

	if ($o{vhost}) {
		$host = "$bucket.localhost:$self->{port}";
		$path = "/$name";
	}

	my %request = (method => $method, host => $host, key => $self->{key},
		secret => $self->{secret}, region => $self->{region},
		token => $self->{token}, time => $self->time(), %o,
		path => $path);

	return sign(\%request) unless $o{presign};

	return presign({ %request, expires => $o{presign} });
}

sub put {
	my ($self, $name, $data, %o) = @_;

	return $self->request('PUT', $name, %o, body => $data);
}

sub get {
	my ($self, $name, %o) = @_;

	return $self->request('GET', $name, %o);
}

sub head {
	my ($self, $name, %o) = @_;

	return $self->request('HEAD', $name, %o);
}

sub delete {
	my ($self, $name, %o) = @_;

	return $self->request('DELETE', $name, %o);
}

# Sends a request that must succeed.

sub must {
	my ($self, $method, $name, %o) = @_;

	my $r = $self->request($method, $name, %o);

	die "$method $name: $r->{status} $r->{body}\n"
		if $r->{status} < 200 || $r->{status} > 299;

	return $r;
}

sub make_bucket {
	my ($self) = @_;

	$self->must('PUT', '');
}

# Removes the bucket with its contents.

sub drop_bucket {
	my ($self) = @_;

	# a store that can't list multipart uploads deletes the bucket even with
	# them

	my $lists = $self->get('', query => { uploads => '' })->{status} != 501;

	for my $upload ($lists ? $self->uploads() : ()) {
		$self->must('DELETE', $upload->{name},
			query => { uploadId => $upload->{id} });
	}

	$self->must('DELETE', $_) for sort keys %{ $self->objects() };
	$self->must('DELETE', '');
}

# Returns { name => size } for all objects whose names begin with a prefix.

sub objects {
	my ($self, $prefix) = @_;

	my (%objects, $token);

	do {
		my $xml = $self->must('GET', '', query => {
			'list-type' => 2, prefix => $prefix // '',
			defined $token ? ('continuation-token' => $token) : ()
		})->{body};

		$objects{text($_, 'Key')} = text($_, 'Size')
			for $xml =~ m!<Contents>(.*?)</Contents>!sg;

		$token = text($xml, 'IsTruncated') eq 'true'
			? text($xml, 'NextContinuationToken') : undef;
	} while (defined $token);

	return \%objects;
}

# Returns the multipart uploads that are neither completed nor aborted, as ({
# name, id }).

sub uploads {
	my ($self, $prefix) = @_;

	my $xml = $self->must('GET', '', query => { uploads => '',
		prefix => $prefix // '' })->{body};

	return map { { name => text($_, 'Key'), id => text($_, 'UploadId') } }
		$xml =~ m!<Upload>(.*?)</Upload>!sg;
}

# Returns the text of the first element with a name.

sub text {
	my ($xml, $name) = @_;

	my ($text) = $xml =~ m!<$name(?: [^>]*)?>([^<]*)</$name>!;
	my %entity = (lt => '<', gt => '>', quot => '"', apos => "'",
		amp => '&');

	$text //= '';
	$text =~ s/&(?:#x([0-9a-fA-F]+)|#(\d+)|(\w+));/defined $1
		? chr(hex($1)) : defined $2 ? chr($2) : $entity{$3}/ge;

	return $text;
}

# Returns the code of an S3 error.

sub code {
	my ($r) = @_;

	return text($r->{body} // '', 'Code');
}

1;

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# TLS to the store: a certificate is accepted only if it is from the trusted CA,
# for this host, and valid today.  With any other certificate clients get 503,
# no upload is acknowledged, and the log gives the reason.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ run_command slurp spew /;
use Test::Xet::S3;
use Test::Xet::S3Fault;

use File::Temp qw/ tempdir /;

my $dir = tempdir(CLEANUP => 1);

chmod(0755, $dir);

authority('ca');
authority('other');

my $s3 = Test::Xet::S3->new();
my $right = store('ca', 'IP:127.0.0.1');

my $t = Test::Xet->new(s3 => $s3, workers => 1, log => 'info',
	trusted($right, "$dir/ca.pem"));

$t->allow(qr/\[crit\] .* xet: "s3:/);
$t->run();

my $n = 0;

is(put()->{status}, 200, 'right: an upload');
is($t->get('/api/v1/files/' . put()->json()->{hash})->{status}, 200,
	'right: a file');
cmp_ok(scalar($right->seen('PutObject')), '>', 0, 'right: by this way');

for my $case (
	[ 'the CA of others', store('other', 'IP:127.0.0.1'), "$dir/ca.pem",
		qr/unable to get local issuer certificate|self.signed/ ],
	[ 'the CAs of the system', $right, undef,
		qr/unable to get local issuer certificate|self.signed/ ],
	[ 'another name', store('ca', 'DNS:other.example'), "$dir/ca.pem",
		qr/no alternative certificate subject name matches/ ],
	[ 'expired', store('ca', 'IP:127.0.0.1', -1), "$dir/ca.pem",
		qr/certificate has expired/ ],
	[ 'no TLS at all', Test::Xet::S3Fault->new($s3), "$dir/ca.pem",
		qr/wrong version number|packet length|timeout|timed out/ ])
{
	my ($name, $to, $ca, $why) = @$case;
	my $from = $t->log_size();
	my $rows = rows();

	again($to, $ca);

	my $r = put();

	is($r->{status}, 503, "$name: 503");
	like(eval { $r->json()->{error}{code} },
		qr/^(?:storage|database)_unavailable$/, "$name: JSON");
	ok($t->wait_log(qr/\[crit\] .* xet: "s3:[^"]*": S3 \w+ of .*$why/, 10,
		$from), "$name: the log");
	is(rows(), $rows, "$name: no row");
	is(scalar(grep { $_->{op} ne '' } $to->seen()), 0,
		"$name: nothing was asked") if $to != $right;

	again($right, "$dir/ca.pem");
	ok(wait_for(30, sub { put()->{status} == 200 }), "$name: over");
}

$t->done();

# --------------------------------------------------------------------------

sub put {
	return $t->put('/api/v1/files', mix(++$n, 300_000));
}

sub rows {
	return $t->sql('SELECT count(*) FROM xet.xorbs');
}

sub trusted {
	my ($to, $ca) = @_;

	return (s3_endpoint => 'https://' . $to->host(), s3_params =>
		'timeout=4s' . ($ca ? " trusted_certificate=$ca" : ''));
}

sub again {
	$t->write_conf(undef, trusted(@_));
	$t->reload();
}

# --------------------------------------------------------------------------
# certificates

sub openssl {
	my ($status, $out) = run_command([ 'openssl', @_ ]);

	die "openssl @_: $out\n" if $status;
}

sub authority {
	my ($name) = @_;

	openssl(qw/ req -x509 -newkey rsa:2048 -nodes -days 9 -subj /,
		"/CN=$name", '-addext', 'keyUsage=keyCertSign', '-keyout',
		"$dir/$name.key", '-out', "$dir/$name.pem");
	chmod(0644, "$dir/$name.pem");
}

# Starts the store with a certificate from a CA for a name, valid for this
# number of days, starting two days ago.

sub store {
	my ($ca, $name, $days) = @_;

	my $file = "$dir/store." . ++$n;
	my $now = time();
	my ($start, $end) = map { my @t = gmtime($_); sprintf(
		'%04d%02d%02d%02d%02d%02dZ', $t[5] + 1900, $t[4] + 1,
		@t[3, 2, 1, 0]) } $now - 2 * 86400,
		$now + ($days // 2) * 86400;

	mkdir("$file.ca");
	spew("$file.ca/index", '');
	spew("$file.ca/serial", sprintf("%02x\n", $n));
	spew("$file.conf", <<"EOF_CONF");
[ ca ]
default_ca = one
[ one ]
new_certs_dir = $file.ca
database = $file.ca/index
serial = $file.ca/serial
default_md = sha256
policy = any
x509_extensions = ext
[ any ]
commonName = supplied
[ ext ]
subjectAltName = $name
EOF_CONF

	openssl(qw! req -newkey rsa:2048 -nodes -subj /CN=store -keyout !,
		"$file.key", '-out', "$file.csr");
	openssl('ca', '-batch', '-notext', '-config', "$file.conf", '-cert',
		"$dir/$ca.pem", '-keyfile', "$dir/$ca.key", '-in',
		"$file.csr", '-out', "$file.pem", '-startdate', $start,
		'-enddate', $end);

	return Test::Xet::S3Fault->new($s3, tls => { pem => "$file.pem",
		key => "$file.key" });
}

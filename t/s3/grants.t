#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Upload grants: clients upload xorbs directly to the bucket.  The server
# verifies these xorbs like xorbs that are uploaded through nginx.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Grant;
use Test::Xet::Process qw/ slurp /;
use Test::Xet::Real;
use Test::Xet::S3;
use Test::Xet::S3Fault;
use Test::Xet::Token;

use File::Temp qw/ tempdir /;

my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);

# some stores do not support conditional PUT, or this checksum

my $once = $s3->name() ne 'garage';
my $sums = $s3->name() ne 'radosgw';

my $t = Test::Xet->new(s3 => $s3, workers => 2, log => 'info',
	s3_endpoint => $fault->endpoint(),
	s3_server => '127.0.0.1:' . $fault->port(),
	s3_params => 'timeout=4s', directives => { xet_grants => 'on' },
	http => Test::Xet::Token::token_directive()
		. 'xet_upload_zone $http_x_who zone=day:64k bytes=1000000/1d;',
	server => Test::Xet::Token::token_location() . <<'EOC');

location /repo/ {
    xet_api;
    xet_api_base /repo;
    xet_auth token;
    xet_access repo;
    client_max_body_size 80m;
}

location /day/ {
    xet_api;
    xet_api_base /day;
    xet_auth off;
    xet_upload_limit day;
}
EOC

$t->token_key();
$t->run();

# --------------------------------------------------------------------------
# the newest hf_xet, unmodified

my $size = 20_000_000;
my $dir = tempdir(CLEANUP => 1);

$t->write_file('in', mix(1, $size));

my $infos = hf_xet({}, 'upload', 'session', $t->url('/api'),
	$t->dir() . '/in');
my $hash = $infos->[0]{hash};

ok($hash, 'hf_xet: uploaded');

hf_xet({}, 'download', 'session', $t->url('/api'), $hash, $size, "$dir/out");
ok(slurp("$dir/out") eq mix(1, $size), 'hf_xet: comes back');

my $log = slurp($t->dir() . '/access.log');

like($log, qr!POST /api/v1/xorb-grants/\S+ HTTP/1.1" 201!, 'hf_xet: granted');
like($log, qr!POST /api/v1/xorb-commits/\S+ HTTP/1.1" 200!,
	'hf_xet: committed');
unlike($log, qr!POST /api/v1/xorbs/!, 'hf_xet: no xorb through nginx');

my @put = grep { $_->{target} =~ m!/staging/! } $fault->seen('PutObject');

cmp_ok(scalar @put, '>', 0, 'hf_xet: into the bucket');
is_deeply([ staged() ], [], 'hf_xet: nothing is left there');

# --------------------------------------------------------------------------
# requests of the test itself

my $xorb = make_xorb(mix(2, 500000), scheme => 'lz4');
my $grant = grant($xorb);

is($grant->{method}, 'PUT', 'grant: method');
is(commit($xorb, $grant)->{status}, 404, 'commit: nothing was put');
is(put_granted($grant, $xorb->{bytes})->{status}, 200, 'put');
is(put_granted($grant, $xorb->{bytes})->{status}, $once ? 412 : 200,
	'put: once');

my $r = commit($xorb, $grant);

is($r->{status}, 200, 'commit');
is($r->{body}, '{"was_inserted":true}', 'commit: new');
is(commit($xorb, $grant)->{status}, 404, 'commit: once');
is(ask($xorb)->{status}, 200, 'grant: it is there');
is(object($xorb), $xorb->{bytes}, 'commit: these bytes');

my $tail = make_xorb(mix(3, 300000), footer => 'v1');
my $bare = make_xorb(mix(3, 300000));

$grant = grant($tail);
is(put_granted($grant, $tail->{bytes})->{status}, 200, 'footer: put');
is(commit($tail, $grant)->{status}, 200, 'footer: commit');
is(object($tail), $bare->{bytes}, 'footer: is not stored');

# A client can send headers that the signature does not cover, and the store
# keeps them with the uploaded object.  The committed copy must not have these
# headers.

my $coded = make_xorb(mix(9, 300000));

$grant = grant($coded);
$grant->{headers}{'Content-Encoding'} = 'gzip';
$grant->{headers}{'Content-Disposition'} = 'attachment';
$grant->{headers}{'Content-Type'} = 'text/html';
is(put_granted($grant, $coded->{bytes})->{status}, 200, 'coding: put');
is(commit($coded, $grant)->{status}, 200, 'coding: commit');
is(object($coded), $coded->{bytes}, 'coding: these bytes');

$r = $s3->head((grep { m!/xorbs/.*\Q$coded->{hash}\E! }
	keys %{ $s3->objects() })[0]);

isnt($r->header_value('Content-Type') // '', 'text/html',
	'coding: no Content-Type of the client');
is($r->header_value($_), undef, "coding: no $_ of the client")
	for qw/ Content-Encoding Content-Disposition /;

# --------------------------------------------------------------------------
# faulty uploads

my $bad = make_xorb(mix(4, 400000));
my $rows = rows();
my $before = keys %{ $s3->objects() };

$grant = grant($bad);
is(put_granted($grant, flipped($bad->{bytes}))->{status}, $sums ? 400 : 200,
	'other bytes than were announced: no put');
is(commit($bad, $grant)->{status}, $sums ? 404 : 400,
	'other bytes than were announced: no commit');

$grant = grant($bad, bytes => flipped($bad->{bytes}));
is(put_granted($grant, flipped($bad->{bytes}))->{status}, 200, 'bad: put');

$r = commit($bad, $grant);
is($r->{status}, 400, 'bad: no commit');
ok($r->json()->{error}{code}, 'bad: why');
is(rows(), $rows, 'bad: no row');
is(scalar(keys %{ $s3->objects() }), $before, 'bad: no object');

$grant = grant($bad, bytes => $xorb->{bytes});
put_granted($grant, $xorb->{bytes});
is(commit($bad, $grant)->{status}, 400, 'another xorb: no commit');

$grant = grant($bad, bytes => substr($bad->{bytes}, 0, -1));
put_granted($grant, substr($bad->{bytes}, 0, -1));
is(commit($bad, $grant)->{status}, 400, 'cut: no commit');

$grant = grant($bad);
put_granted($grant, $bad->{bytes});

(my $forged = $grant->{id}) =~ s/(.)$/$1 eq '0' ? '1' : '0'/e;
is(commit($bad, { id => $forged })->{status}, 404, 'another id');
is(commit($xorb, $grant)->{status}, 404, 'the id of another xorb');
is(commit($bad, { id => 'z' x 64 })->{status}, 404, 'no id');
is(commit($bad, { id => '..' })->{status}, 404, 'dots');
is(rows(), $rows, 'no row of all that');

is(ask($bad, body => '{"length":100000000000,"checksum":{"algo":"crc64nvme",'
	. '"value":"1"}}')->{status}, 413, 'grant: too large');
is(ask($bad, body => '{"length":100}')->{status}, 400, 'grant: no checksum');
is(ask($bad, body => '{')->{status}, 400, 'grant: no JSON');
is(ask($bad, body => '{"length":100,"checksum":{"algo":"crc64nvme",'
	. '"value":"18446744073709551616"}}')->{status}, 400,
	'grant: a checksum that is none');
is(ask($bad, body => '{"length":100,"checksum":{"algo":"md5",'
	. '"value":"1"}}')->{status}, 404, 'grant: another kind of checksum');
is(ask($bad, body => 'x' x 5000)->{status}, 413, 'grant: a long request');

# --------------------------------------------------------------------------
# the bytes change while they are verified

# A client can use its URL again, with other bytes that have the same checksum.
# The test cannot make such bytes, so it stores different bytes itself.

my $attack = make_xorb(mix(5, 600000));
my $rule = $fault->add(op => 'GetObject', match => 'staging', do => 'hold',
	ms => 1500, count => 1);

$grant = grant($attack);
put_granted($grant, $attack->{bytes});

my $c = $t->connect();

$c->start('POST', path($attack, $grant), { 'Content-Length' => 0 });
ok(wait_for(10, sub { $fault->used($rule) }), 'changed: is being read');
is(put_granted($grant, $attack->{bytes})->{status}, 200,
	'changed: the URL is good again');
$s3->put((grep { !/ours/ } staged())[0], flipped($attack->{bytes}));
is($c->response('POST')->{status}, 200, 'changed: commit');
is(object($attack), $attack->{bytes}, 'changed: what was verified');
$fault->clear();

# while four commits of one grant run, the client uploads to its URL again, and
# the staged bytes change

my $twice = make_xorb(mix(6, 700000));

$grant = grant($twice);
put_granted($grant, $twice->{bytes});

my @c = map { $t->connect() } 1 .. 4;

$_->start('POST', path($twice, $grant), { 'Content-Length' => 0 }) for @c;
put_granted($grant, $twice->{bytes}) for 1 .. 5;
$s3->put($_, flipped($twice->{bytes})) for grep { !/ours/ } staged();

my @status = sort map { $_->response('POST')->{status} } @c;

ok((grep { $_ == 200 } @status), "at once: @status");
is(object($twice), $twice->{bytes}, 'at once: what was verified');

# --------------------------------------------------------------------------
# permissions

my $mine = make_xorb(mix(7, 200000));

$grant = grant($mine, who => 'a/a@ann');
put_granted($grant, $mine->{bytes});

is(commit($mine, $grant, who => 'a/a@bob')->{status}, 404,
	'another subject: no commit');
is(commit($mine, $grant, who => 'b/b@ann')->{status}, 404,
	'another repo: no commit');
is(commit($mine, $grant, who => 'a/a@ann')->{status}, 200, 'mine: commit');
is(ask($mine, who => 'b/b@bob')->{status}, 201,
	'nobody learns that it is there');
is(ask($mine, who => 'a/a@ann')->{status}, 200, 'but who has put it');

# --------------------------------------------------------------------------
# bytes that were uploaded directly to the bucket count for limits, too

{
	my %who = ('X-Who' => 'eve');
	my @status;

	for my $n (1 .. 3) {
		my $xorb = make_xorb(random_bytes(10 + $n, 600000),
			scheme => 'none', sizes => [ 100000 ]);
		my $r = $t->post("/day/v1/xorb-grants/default/$xorb->{hash}",
			\grant_body($xorb->{bytes}), \%who);

		push @status, $r->{status};
		next if $r->{status} != 201;

		put_granted($r->json(), $xorb->{bytes});
		push @status, $t->post('/day' . commit_path($xorb, $r->json()),
			\'', \%who)->{status};
	}

	is("@status", '201 200 201 200 429', 'too many bytes by grants');
}

# --------------------------------------------------------------------------
# a store that fails

my $late = make_xorb(mix(8, 200000));

$grant = grant($late);
put_granted($grant, $late->{bytes});
$fault->add(op => 'CopyObject', do => 'status', status => 500);
$t->allow(qr/\[crit\] .* xet: "s3:/);

is(commit($late, $grant)->{status}, 503, 'a store that fails: 503');
is(ask($late)->{status}, 201, 'a store that fails: it is not there');

$fault->clear();

ok(wait_for(10, sub { commit($late, $grant)->{status} == 200 }),
	'a store that fails: over');

$t->done();

# --------------------------------------------------------------------------

sub ask {
	my ($xorb, %o) = @_;

	my $bytes = $o{bytes} // $xorb->{bytes};
	my $body = $o{body} // grant_body($bytes);

	return $t->post(base(%o) . "/v1/xorb-grants/default/$xorb->{hash}",
		\$body, $o{who} ? $t->auth('write', $o{who}) : ());
}

sub grant {
	my ($xorb, %o) = @_;

	my $r = ask($xorb, %o);

	die "$r->{status} $r->{body}\n" if $r->{status} != 201;

	return $r->json();
}

sub path {
	my ($xorb, $grant, %o) = @_;

	return base(%o) . commit_path($xorb, $grant);
}

sub commit {
	my ($xorb, $grant, %o) = @_;

	return $t->post(path($xorb, $grant, %o), \'', $o{who}
		? $t->auth('write', $o{who}) : ());
}

sub base {
	my (%o) = @_;

	return $o{who} ? '/repo' : '/api';
}

sub staged {
	return grep { m!/staging/! } sort keys %{ $s3->objects() };
}

# Returns the bytes of the copy to which the row refers.

sub object {
	my ($xorb) = @_;

	my ($name) = grep { m!/\Q$xorb->{hash}\E\.! && m!/xorbs/! }
		sort keys %{ $s3->objects() };

	return $name ? $s3->get($name)->{body} : 'none';
}

sub flipped {
	my ($bytes) = @_;

	substr($bytes, length($bytes) / 2, 1) ^= "\x40";

	return $bytes;
}

sub rows {
	return $t->sql('SELECT count(*) FROM xet.xorbs');
}

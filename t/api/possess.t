#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Who may name a xorb.  A xorb of one chunk has the hash of that chunk as its
# name, so knowing the hash proves nothing.  A tenant who has seen names of
# xorbs can read only bytes that this tenant has sent or may read, and learns
# nothing about data of other tenants.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

use JSON::PP ();

my $t = Test::Xet->new(workers => 2, pg_conf => "log_statement = all\n",
	Test::Xet::Token::repos(<<'EOC'));
location /wide/ {
            xet_api;
            xet_api_base /wide;
            xet_auth token;
            xet_access repo;
            xet_dedup_scope store;
        }

        location /store/ {
            xet_api;
            xet_api_base /store;
            xet_auth token;
            xet_access store;
        }

        location /open/ {
            xet_api;
            xet_api_base /open;
            xet_auth off;
        }
EOC

$t->token_key();
$t->run();
$t->fds_mark();

my $seed = 0;
my $r;

# --------------------------------------------------------------------------
# The attack: the beginning of a file is public, and its tail is in a xorb of
# one chunk.  One dedup query about the first chunk names that xorb.

my $head = xorb(600000, sizes => [ 60000 ]);
my $tail = xorb(40000);

is(scalar @{ $tail->{chunks} }, 1, 'the tail is one chunk');

send_xorb($_, 'a/a@ann') for $head, $tail;

my $public = register([ [ $head, 0, 10 ] ], 'p/p@ann');

$t->sql("select xet.repo_set_public('p/p', true)");

my $private = register([ [ $head, 0, 10 ], [ $tail, 0, 1 ] ], 'a/a@ann');

for my $base (qw! /api /wide !) {
	my ($told) = grep { $_->{hash} eq $tail->{hash} }
		dedup($head->{chunks}[0]{hash}, 'b/b@bob', $base);

	is($told, undef, "$base: dedup names no xorb of one chunk");

	$r = try_shard([ [ $tail, 0, 1 ] ], 'b/b@bob', base => $base);

	is_deeply($r->refusal(), [ 400, 'application/json', 'unknown_xorb' ],
		"$base: who knows its name has nothing");

	is(get("$base/v1/files/" . name([ [ $tail, 0, 1 ] ]), 'b/b@bob')
		->{status}, 404, "$base: no byte of the file");
}

# --------------------------------------------------------------------------
# an absent xorb and another tenant's xorb get the same response

my $none = xorb(40000);
my $other = xorb(600000, sizes => [ 60000 ]);

send_xorb($other, 'a/a@ann');

my $absent = xorb(600000, sizes => [ 60000 ]);

for my $case (
	[ 'one chunk', $tail, $none, 0, 1 ],
	[ 'a length that is guessed', $tail, $none, 0, 1, length => 39999 ],
	[ 'a range outside', $tail, $none, 0, 2 ],
	[ 'many chunks, with a wrong proof', $other, $absent, 0, 10,
		wrong => 1 ],
	[ 'many chunks, of a wrong length', $other, $absent, 0, 10,
		length => 1 ],
	[ 'many chunks, a range outside', $other, $absent, 3, 11 ],
	[ 'the last of them, with a wrong proof', $other, $absent, 9, 10,
		wrong => 1 ])
{
	my ($name, $there, $missing, $start, $end, %o) = @$case;

	my @told = map { try_shard([ [ $_, $start, $end ] ], 'b/b@bob', %o) }
		$there, $missing;

	is($told[0]{status}, 400, "$name: refused");
	is($told[0]{body} =~ s/[0-9a-f]{64}//gr,
		$told[1]{body} =~ s/[0-9a-f]{64}//gr,
		"$name: not his or not there");
	is_deeply(headers($told[0]), headers($told[1]),
		"$name: also in headers");
}

for my $method (qw/ HEAD GET /) {
	my @told = map { get("/api/v1/xorbs/default/$_->{hash}", 'b/b@bob',
		$method) } $tail, $none, $other;

	is_deeply($told[$_]{body}, $told[0]{body}, "$method xorb: body $_")
		for 1, 2;
	is_deeply(headers($told[$_]), headers($told[0]),
		"$method xorb: headers $_") for 1, 2;
	is($told[0]{status}, $method eq 'HEAD' ? 404 : 403,
		"$method xorb: of others");
}

is(get("/api/v1/xorbs/default/$_->{hash}", 'a/a', 'HEAD')->{status}, 200,
	'HEAD xorb: own') for $tail, $other;

# --------------------------------------------------------------------------
# a chunk of a larger xorb that is also a xorb of its own: its hash is a name

my $bytes = random_bytes(++$seed, 40000);
my $alone = make_xorb($bytes, sizes => [ 40000 ]);
my $among = make_xorb(random_bytes(++$seed, 40000) . $bytes
	. random_bytes(++$seed, 50000), sizes => [ 40000 ]);

is($among->{chunks}[1]{hash}, $alone->{hash}, 'a chunk is a xorb of its own');

send_xorb($_, 'a/a@ann') for $alone, $among;

is(try_shard([ [ $among, 1, 2 ] ], 'b/b@bob')->{status}, 400,
	'such a chunk, in a larger xorb');
is(try_shard([ [ $among, 2, 3 ] ], 'b/b@bob')->{status}, 200,
	'a chunk whose hash proves the data');
is(try_shard([ [ $among, 0, 4 ] ], 'c/c@cat')->{status}, 200,
	'both kinds in one term');

# clients send the hashes of first chunks unkeyed, so these hashes prove nothing

my $small = xorb(120000, sizes => [ 40000 ]);

send_xorb($small, 'a/a@ann');
register([ [ $small, $_, $_ + 1 ] ], 'a/a@ann') for 0 .. 2;

is(try_shard([ [ $small, 0, 3 ] ], 'b/b@bob')->{status}, 400,
	'first chunks prove nothing together');

# --------------------------------------------------------------------------
# runs: the terms of a xorb share a slice in the query, and each has its own if
# the caller may not name all of the slice

for my $case (
	[ 'the sender', 'a/a@ann', 200, 1 ],
	[ 'another tenant, with proofs', 'h/h@hal', 200, 2,
		[ $other, 1 .. 10 ] ],
	[ 'the same tenant again', 'h/h@hal', 200, 1, [ $other, 1 .. 10 ] ],
	[ 'a first chunk, which proves nothing', 'h/h@hal', 400, 2 ],
	[ 'a tenant who may name all', 'c/c@cat', 200, 1, [ $among, 0 .. 4 ] ],
	[ 'a tenant who may name one chunk', 'b/b@bob', 200, 2,
		[ $among, 2 .. 4 ] ],
	[ 'a xorb of its own among the chunks', 'b/b@bob', 400, 2,
		[ $among, 0 .. 4 ] ],
	[ 'a run past the end, by the sender', 'a/a@ann', 400, 2,
		[ $other, 7 .. 11 ] ],
	[ 'a run in pieces, by the sender', 'a/a@ann', 200, 1,
		[ $other, 4 .. 8, 0 .. 2 ] ],
	[ 'a run in pieces, around a first chunk', 'h/h@hal', 200, 1,
		[ $other, 4 .. 8, 1 .. 3 ] ],
	[ 'the first and the last chunk', 'a/a@ann', 200, 1,
		[ $other, 9, 10, 0, 1 ] ])
{
	my ($name, $who, $status, $queries, $run) = @$case;
	my ($xorb, @at) = @{ $run // [ $other, 0 .. 10 ] };
	my $before = slices();

	is(try_shard([ map { $at[$_] + 1 == $at[$_ + 1]
		? [ $xorb, @at[$_, $_ + 1] ] : () } 0 .. $#at - 1 ], $who)
		->{status}, $status, "run: $name");
	is(slices() - $before, $queries, "run: $name: queries");
}

for my $case (
	[ 'a wrong proof', wrong => 1 ],
	[ 'a wrong length', length => 1 ],
	[ 'without proofs', verification => 0 ])
{
	my ($name, %o) = @$case;
	my @terms = map { my $x = $_; [ map { [ $x, $_, $_ + 1 ] } 2 .. 5 ] }
		$other, $absent;
	my (@told, @queries);

	for my $terms (@terms) {
		my $before = slices();

		push @told, try_shard($terms, 'i/i@ida', %o);
		push @queries, slices() - $before;
	}

	is($told[0]{status}, 400, "run: $name");
	is($told[0]{body} =~ s/[0-9a-f]{64}//gr,
		$told[1]{body} =~ s/[0-9a-f]{64}//gr,
		"run: $name: not theirs or not there");
	is_deeply(headers($told[0]), headers($told[1]),
		"run: $name: also in headers");
	is($queries[0], $queries[1], "run: $name: as many queries");
	is(try_shard($terms[0], 'a/a@ann', %o)->{status}, 400,
		"run: $name: by the sender");
}

# --------------------------------------------------------------------------
# who may name the xorb: the repo, the subject, a reader of the file, and
# anyone who sends the bytes

is(try_shard([ [ $tail, 0, 1 ] ], 'a/a@eve')->{status}, 200,
	'the repo has sent it');
is(try_shard([ [ $small, 1, 2 ] ], 'd/d@ann')->{status}, 200,
	'a chunk of a xorb of the subject');
is(try_shard([ [ $tail, 0, 1 ] ], 'd/d@ann')->{status}, 200,
	'the subject has sent it');
is(try_shard([ [ $tail, 0, 1 ] ], 'd/d@fay')->{status}, 200,
	'a file of the repo uses it');
is(try_shard([ [ $tail, 0, 1 ] ], 'e/e@fay')->{status}, 200,
	'the subject was given it');
is(try_shard([ [ $tail, 0, 1 ] ], 'f/f')->{status}, 400,
	'a token without a subject');
is(try_shard([ [ $alone, 0, 1 ] ], 'a/a')->{status}, 200,
	'the same token, for its repo');

my $seen = xorb(40000);

send_xorb($seen, 'p/p@ann');
is(try_shard([ [ $seen, 0, 1 ] ], 'b/b@bob')->{status}, 400,
	'sent by a public repo, but in no file');

my $shown = register([ [ $seen, 0, 1 ] ], 'p/p@ann');

is(try_shard([ [ $seen, 0, 1 ] ], 'b/b@bob')->{status}, 200,
	'a public file has it');

$seen = xorb(40000);
send_xorb($seen, 'p/p@ann');
$shown = register([ [ $seen, 0, 1 ] ], 'p/p@ann');
is(get("/api/v1/files/$shown", 'p/p@ann', 'DELETE')->{status}, 204,
	'the public file is deleted');
is(try_shard([ [ $seen, 0, 1 ] ], 'b/b@bob')->{status}, 400,
	'the xorb is not readable any more');

is(send_xorb($seen, 'b/b@bob')->json()->{was_inserted}, JSON::PP::true,
	"others' xorb is new to its sender");
is(send_xorb($seen, 'b/b@bob')->json()->{was_inserted}, JSON::PP::false,
	'known the second time');
is(try_shard([ [ $seen, 0, 1 ] ], 'b/b@bob')->{status}, 200,
	'a full upload of a known xorb is a proof');

# a repo that is later created under the same name does not inherit the access
# of the deleted repo

my $left = xorb(40000);

send_xorb($left, 'g/g@ann');
$t->sql("select xet.repo_delete('g/g')");
is(try_shard([ [ $left, 0, 1 ] ], 'g/g@bob')->{status}, 400,
	'a deleted repo has no access');

# --------------------------------------------------------------------------
# what dedup responses reveal: nothing of chunks that no visible file uses

my $mixed = xorb(600000, sizes => [ 50000 ]);
my @chunks = @{ $mixed->{chunks} };

send_xorb($mixed, 'a/a@ann');
register([ [ $mixed, 2, 4 ] ], 'p/p@ann');
register([ [ $mixed, 6, 8 ] ], 'a/a@ann');

my ($answer) = dedup($chunks[2]{hash}, 'b/b@bob');

is($answer->{hash}, $mixed->{hash}, 'part: the xorb');
is(scalar @{ $answer->{chunks} }, 4, 'part: up to the last visible chunk');

my @real = map { keyed_hash($answer->{key}, $_->{hash}) } @chunks;

is_deeply([ map { $answer->{chunks}[$_]{hash} eq $real[$_] ? 1 : 0 } 0 .. 3 ],
	[ 0, 0, 1, 1 ], 'part: the others are noise');
is($answer->{chunks}[$_]{raw_length}, $chunks[$_]{raw_length},
	"part: length of $_") for 2, 3;
isnt($answer->{chunks}[0]{raw_length}, $chunks[0]{raw_length},
	'part: no length of others');
isnt($answer->{raw_size}, $mixed->{raw_size}, 'part: no sum of the lengths');
is($answer->{stored}, 0, 'part: no stored size');
is_deeply(scalar dedup($chunks[2]{hash}, 'c/c@eve'), $answer,
	'part: the same for another caller');
is_deeply([ dedup($chunks[6]{hash}, 'b/b@bob') ], [],
	'part: no visible first chunk: a miss');

($answer) = dedup($chunks[2]{hash}, 'a/a@bob');
is_deeply([ map { $_->{hash} } @{ $answer->{chunks} } ],
	[ map { keyed_hash($answer->{key}, $_->{hash}) } @chunks ],
	'whole: for the repo that sent it');
is($answer->{raw_size}, $mixed->{raw_size}, 'whole: its size');

($answer) = dedup($chunks[6]{hash}, 'b/b@bob', '/wide');
is_deeply([ map { $_->{hash} } @{ $answer->{chunks} } ],
	[ map { keyed_hash($answer->{key}, $_->{hash}) } @chunks ],
	'xet_dedup_scope store: all chunks');
is(try_shard([ [ $mixed, 6, 7 ] ], 'b/b@bob')->{status}, 400,
	'scope repo: a first chunk proves nothing');
is(try_shard([ [ $mixed, 6, 7 ] ], 'b/b@bob', base => '/wide')->{status}, 200,
	'xet_dedup_scope store: may be used');

# a file uploaded with PUT is deduplicated only against chunks that the caller
# may use

my $data = random_bytes(++$seed, 300000);
my @put = map { $t->http('PUT', '/api/v1/files', who($_), \$data)->json()
	->{new_bytes} } qw! a/a@ann b/b@bob b/b@bob !;

is_deeply(\@put, [ 300000, 300000, 0 ],
	"PUT: others' chunks are new");

# --------------------------------------------------------------------------
# grants: bytes that need not be sent

sub grant {
	my ($xorb, $who, $base) = @_;

	my $body = '{"length":1,"checksum":{"algo":"crc64nvme","value":"1"}}';

	return $t->post(($base // '/api')
		. "/v1/xorb-grants/default/$xorb->{hash}", \$body, who($who));
}

my $granted = xorb(200000, sizes => [ 50000 ]);

send_xorb($granted, 'a/a@ann');

is(grant($granted, 'a/a@bob')->{status}, 200, 'grant: of the repo');
is(grant($granted, 'b/b@ann')->{status}, 200, 'grant: of the subject');
is($t->sql("select count(*) from xet.xorbs where advertised_on = xet.today()"
	. " and encode(hash, 'hex') = '" . plain_hash($granted->{hash}) . "'"),
	1, 'grant: recorded');

my @told = map { grant($_, 'b/b@bob') } $granted, $absent;

is_deeply($told[0]->refusal(), [ 404, 'application/json', 'xorb_not_found' ],
	'grant: not of others');
is($told[0]{body}, $told[1]{body}, 'grant: as if it were not there');
is_deeply(headers($told[0]), headers($told[1]), 'grant: also in headers');
is($t->post("/api/v1/xorb-grants/default/$granted->{hash}", \'{}',
	who('a/a', 'read'))->{status}, 403, 'grant: not for readers');
is(grant($granted)->{status}, 401, 'grant: not without a token');

register([ [ $granted, 0, 2 ] ], 'p/p@ann');
is(grant($granted, 'b/b@bob')->{status}, 404, 'grant: not for visible parts');
register([ [ $granted, 2, 4 ] ], 'p/p@ann');
is(grant($granted, 'b/b@bob')->{status}, 200,
	'grant: if files show all chunks');

is(grant($granted, undef, '/open')->{status}, 200, 'grant: without tokens');
is(grant($absent, undef, '/open')->{status}, 404, 'grant: a missing xorb');
is(grant($granted, 'x@y', '/store')->{status}, 200, 'grant: of the store');

# --------------------------------------------------------------------------
# a store without repos, with tokens

my $plain = xorb(40000);

is(try_shard([ [ $head, 0, 10 ] ], 'x@bob', base => '/store',
	verification => 0)->{status}, 400,
	'store: without verification hashes');
send_xorb($plain, 'x@ann', '/store');
is(try_shard([ [ $plain, 0, 1 ] ], 'x@bob', base => '/store')->{status}, 400,
	'store: the hash of one chunk is no proof');
is(grant($plain, 'x@bob', '/store')->{status}, 404,
	'store: the name is no proof');
is(try_shard([ [ $plain, 0, 1 ] ], 'x@ann', base => '/store')->{status}, 200,
	'store: the sender');
is(try_shard([ [ $plain, 0, 1 ] ], 'x@bob', base => '/store')->{status}, 200,
	'store: a file uses it');

$plain = xorb(40000);
send_xorb($plain, 'x', '/store');
is(try_shard([ [ $plain, 0, 1 ] ], 'x', base => '/store')->{status}, 200,
	'store: tokens without a subject');

# without tokens nothing is recorded and nothing is checked

my $rows = 'select count(*) from xet.xorb_subjects';
my $before = $t->sql($rows);

$plain = xorb(40000);
send_xorb($plain, undef, '/open');
is(try_shard([ [ $plain, 0, 1 ] ], undef, base => '/open',
	verification => 0)->{status}, 200, 'open: no proof is needed');
is($t->sql($rows), $before, 'open: nothing is recorded');

$t->done();

# --------------------------------------------------------------------------

# Returns the number of queries for the slices of shards.

sub slices {
	return scalar(() = $t->pg()->log() =~ /execute shard_slices:/g);
}

# Makes a xorb of one chunk, or of the given sizes.

sub xorb {
	my ($size, %o) = @_;

	return make_xorb(random_bytes(++$seed, $size), sizes => [ $size ], %o);
}

sub who {
	my ($who, $scope) = @_;

	return defined $who ? $t->auth($scope // 'write', $who) : {};
}

sub send_xorb {
	my ($xorb, $who, $base) = @_;

	$base //= '/api';

	my $r = $t->post("$base/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes}, who($who));

	die "xorb: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return $r;
}

# Returns a shard of one file, made of what its author knows about the xorbs.  A
# range past the end of a xorb has made-up chunks.

sub shard {
	my ($terms, %o) = @_;

	my @terms;

	for my $term (@$terms) {
		my ($xorb, $start, $end) = @$term;
		my @have = @{ $xorb->{chunks} };
		my @chunks = map { {
			hash => $o{wrong} ? 'e' x 64
				: ($have[$_] // $have[0])->{hash},
			raw_length => ($have[$_] // $have[0])->{raw_length}
		} } $start .. $end - 1;

		$chunks[0]{raw_length} = $o{length} if $o{length};

		push @terms, { xorb => $xorb->{hash}, start => $start,
			end => $end, chunks => \@chunks };
	}

	return make_shard({ files => [ { terms => \@terms,
		verification => $o{verification} // 1
			? JSON::PP::true : JSON::PP::false } ], xorbs => [] });
}

sub name { return shard(@_)->{files}[0]{hash} }

sub try_shard {
	my ($terms, $who, %o) = @_;

	return $t->post(($o{base} // '/api') . '/v1/shards',
		\shard($terms, %o)->{bytes}, who($who));
}

sub register {
	my ($terms, $who) = @_;

	my $r = try_shard($terms, $who);

	die "shard: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return name($terms);
}

# Returns the xorbs of a dedup response, each with the key of the response and
# the sum of stored sizes.

sub dedup {
	my ($chunk, $who, $base) = @_;

	my $r = $t->get(($base // '/api') . "/v1/chunks/default/$chunk",
		who($who, 'read'));

	return if $r->{status} == 404;

	my $footer = substr($r->{body}, -200);
	my @xorbs = map { {
		%$_, key => unpack('x72 H64', $footer),
		stored => unpack('x184 Q<', $footer)
	} } @{ parse_shard($r->{body})->{xorbs} };

	return wantarray ? @xorbs : $xorbs[0];
}

sub headers {
	my ($r) = @_;

	return { map { $_ => $r->{headers}{$_} } grep { $_ ne 'date' }
		keys %{ $r->{headers} } };
}

sub get {
	my ($path, $who, $method) = @_;

	$method ||= 'GET';

	return $t->http($method, $path,
		who($who, $method eq 'DELETE' ? 'delete' : 'read'));
}

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Which further xorbs a dedup response names, with repos that are isolated from
# each other: all that the caller may refer to and probably needs, and no xorb
# of other users.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Collect;
use Test::Xet::Copies;

my $t = Test::Xet->new(workers => 2, Test::Xet::Token::repos());

$t->token_key();
$t->run();
$t->allow(qr/is missing or has another size/);

my (%name, %sent);

# Uploads data as a file of several xorbs, "$name 0", "$name 1"...; a xorb that
# was sent before keeps its name.

sub upload {
	my ($name, $who, $data, %o) = @_;

	my $file = $t->upload($data, xorb_chunks => 6,
		headers => $t->auth('write', $who), %o);
	my $n = 0;

	$name{$_->{hash}} //= "$name " . $n++ for @{ $file->{xorbs} };
	$sent{$name} = $file;

	return $file;
}

# Returns the names of the xorbs in the response for the first chunk of a xorb,
# or the status.

sub asked {
	my ($xorb, $who) = @_;

	my $r = $t->get('/api/v1/chunks/default/'
		. "$xorb->{chunks}[0]{hash}", $t->auth('read', $who));

	return "status $r->{status}" if $r->{status} != 200;

	return join(', ', map { $name{$_->{hash}} // "unknown $_->{hash}" }
		@{ parse_shard($r->{body})->{xorbs} });
}

sub first_of { return $sent{$_[0]}{xorbs}[0] }

sub names {
	return join(', ', map { my $name = $_;
		map { "$name $_" } 0 .. $#{ $sent{$name}{xorbs} } } @_);
}

sub recorded {
	return $t->sql('SELECT count(*) FROM xet.xorbs'
		. ' WHERE advertised_on = xet.today()');
}

# --------------------------------------------------------------------------
# ann uploads three files to her first repo

upload('one', 'a/one@ann', mix(1, 1_500_000));
upload('two', 'a/one@ann', mix(2, 1_500_000));
upload('three', 'a/one@ann', mix(3, 1_500_000));

cmp_ok(scalar @{ $sent{two}{xorbs} }, '>=', 3, 'a file of several xorbs');
is(recorded(), 0, 'no xorb is recorded as advertised');

# The order: the xorb of the chunk, then by age.

sub around {
	return join(', ', "$_[0] 0", grep { $_ ne "$_[0] 0" }
		split(/, /, names(qw/ one two three /)));
}

is(asked(first_of('two'), 'a/two@ann'), around('two'),
	'a new repo of the same owner: all that she has sent');
is(recorded(), scalar(split(/, /, around('two'))), 'each xorb is recorded');
is(asked(first_of('two'), 'a/one@ann'), around('two'), 'the same repo');
is(asked(first_of('two'), 'a/one@bea'), around('two'),
	'a colleague in the same repo');
is(asked(first_of('two'), 'b/b@bea'), 'status 404',
	'a colleague in another repo');
is(asked(first_of('two'), 'z/z@zed'), 'status 404', 'a stranger');

# --------------------------------------------------------------------------
# a stranger sends xorbs at the same time, with a file that contains data of
# both

upload('four', 'a/four@ann', mix(4, 1_500_000));
upload('zed', 'z/z@zed', mix(5, 1_500_000));
upload('five', 'a/four@ann', mix(6, 1_500_000));
upload('both', 'z/z@zed', mix(4, 1_500_000) . mix(5, 1_500_000));

like(asked(first_of('four'), 'a/new@ann'), qr/^four 0\b.*\bfive 0/,
	'the files around');
unlike(asked(first_of('four'), 'a/new@ann'), qr/zed|both/,
	'no xorb of the stranger');
unlike(asked(first_of('zed'), 'z/new@zed'), qr/one|two|three|five/,
	'the stranger sees no xorb of the owner');

# --------------------------------------------------------------------------
# a public repo: everyone may see its file, but not the xorbs around it

upload('six', 'p/public@ann', mix(7, 1_500_000));
upload('seven', 'a/one@ann', mix(8, 1_500_000));
upload('eight', 'z/z@zed', mix(9, 1_500_000));

$t->sql("SELECT xet.repo_set_public('p/public', true)");

is(asked(first_of('six'), 'z/z@zed'), names('six'),
	'public: the xorbs of the file');
is(asked(first_of('six'), 'n/n@nobody'), names('six'),
	'public: the same for another stranger');
like(asked(first_of('six'), 'a/two@ann'), qr/seven 0/,
	'public: the owner also sees what she sent later');

# a private file of the stranger with the public data shows nothing to others

upload('nine', 'z/z@zed', mix(7, 1_500_000) . mix(10, 1_500_000));

is(asked(first_of('six'), 'n/n@nobody'), names('six'),
	'public: a private file with the same data does not matter');

$t->sql("SELECT xet.repo_set_public('p/public', false)");
is(asked(first_of('six'), 'n/n@nobody'), 'status 404', 'no longer public');

# --------------------------------------------------------------------------
# copies that are missing, and rows that are collected

my $lost = $sent{two}{xorbs}[1];

$t->remove_copy($t->copy($lost->{hash}));

unlike(asked(first_of('two'), 'a/two@ann'), qr/two 1/,
	'a xorb without a copy is not named');
like(asked(first_of('two'), 'a/two@ann'), qr/two 2/, 'the next one is');
ok(wait_for(10, sub { $t->sql('SELECT count(*) FROM xet.xorbs'
	. ' WHERE damaged_at IS NOT NULL') == 1 }), 'the damage is recorded');
unlike(asked(first_of('two'), 'a/two@ann'), qr/two 1/,
	'a damaged xorb is not named');
is($t->post('/api/v1/xorbs/default/' . $lost->{hash}, \$lost->{bytes},
	$t->auth('write', 'a/one@ann'))->{status}, 200, 'sent again');
like(asked(first_of('two'), 'a/two@ann'), qr/two 1/, 'named again');

$t->sql("UPDATE xet.xorbs SET advertised_on = NULL, created_at = now()"
	. " - interval '90 days'");
is($t->http('DELETE', "/api/v1/files/$sent{three}{hash}",
	$t->auth('delete', 'a/one@ann'))->{status}, 204, 'a file is deleted');
is(collect($t), scalar @{ $sent{three}{xorbs} }, 'its xorbs are collected');
unlike(asked(first_of('two'), 'a/two@ann'), qr/three/,
	'collected xorbs are not named');

# --------------------------------------------------------------------------
# a repo that is deleted, and another owner's repo of the same name

is($t->sql("SELECT xet.repo_delete('a/four')"), 't', 'a repo is deleted');
is(asked(first_of('five'), 'a/four@zed'), 'status 404',
	'a repo of the same name');
like(asked(first_of('five'), 'a/four@ann'), qr/^five 0/,
	'the owner has the data');

# --------------------------------------------------------------------------
# bounds

upload('many', 'm/many@max', random_bytes(1, 100 * 1000),
	sizes => [ 1000 ], xorb_chunks => 1);

my @many = split(/, /, asked(first_of('many'), 'm/new@max'));

is(scalar @many, 64, 'at most 64 xorbs');
is("@many[0, 63]", 'many 0 many 63', 'those that follow');

@many = split(/, /, asked(first_of('many'), 'm/many@max'));
is("@many[0, 63]", 'many 0 many 63', 'the same with the file');

# a small xorb is a small upload: the response is not much larger

$t->sql(<<'EOF_SQL');
WITH new AS (
    INSERT INTO xet.xorbs (hash, chunk_count, raw_size, stored_size,
                           chunk_hashes, raw_ends, stored_ends)
    SELECT sha256(('x' || n)::bytea), c, c, 9 * c,
           (SELECT string_agg(sha256((n || ' ' || i)::bytea), '' ORDER BY i)
              FROM generate_series(1, c) i),
           (SELECT string_agg(xet.le4(i), '' ORDER BY i)
              FROM generate_series(1, c) i),
           (SELECT string_agg(xet.le4(9 * i), '' ORDER BY i)
              FROM generate_series(1, c) i)
      FROM generate_series(1, 40) n,
           LATERAL (SELECT CASE WHEN n = 20 THEN 50 ELSE 1000 END) w(c)
    RETURNING id, chunk_hashes
), sender AS (
    INSERT INTO xet.xorb_subjects (xorb_id, subject, chunks)
    SELECT id, sha256('me'), '{[0,)}' FROM new
)
INSERT INTO xet.chunks (hash, xorb_id, idx)
SELECT substring(chunk_hashes FROM 1 FOR 32), id, 0 FROM new;
EOF_SQL

sub sizes {
	my ($n, $any) = @_;

	return $t->sql('SELECT count(*) || \' \' || sum(chunk_count)'
		. " FROM xet.chunk_find(sha256('$n 1'), false, $any, 'new',"
		. " 'me')");
}

is(sizes(1, 'false'), '40 39050', 'a large xorb: all');
is(sizes(20, 'false'), '4 3050', 'a small xorb: 64 times its chunks');
is(sizes(20, 'true'), '1 50', 'without repos: only by files');

$t->done();

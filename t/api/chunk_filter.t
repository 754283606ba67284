#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet_chunk_filter: dedup queries for chunks that the caller can't see cost
# PostgreSQL nothing, whether or not others have the chunk.  A caller finds own
# uploads at once, and what others publish within "valid", on this machine and
# on others.  A filter from before a deletion, a loss of rights or a damage
# shows nothing.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cached;
use Test::Xet::Copies;
use Test::Xet::Metrics;

use Digest::SHA qw/ sha256_hex /;

my ($t, $far) = two_machines('xet_chunk_filter zone=chunks:4m');
my $seed = 0;

# --------------------------------------------------------------------------
# misses: after 16 queries, none costs a statement

{
	my ($asked, $hits) = counts($t);

	is(query(random(), 'a/a@ann'), 404, 'a miss') for 1 .. 15;

	my ($asked2, $hits2) = counts($t);

	is($asked2 - $asked, 15, 'each costs a statement');
	is($hits2 - $hits, 0, 'no filter yet');

	query(random(), 'a/a@ann') for 1 .. 3;

	($asked, $hits) = counts($t);

	is(query(random(), 'a/a@ann'), 404, 'a miss of the filter')
		for 1 .. 200;

	($asked2, $hits2) = counts($t);

	cmp_ok($asked2 - $asked, '<', 10, 'misses without a statement');
	is($asked2 - $asked + $hits2 - $hits, 200, 'all are counted');
	is($t->head('/repo/v1/chunks/default/' . random(),
		$t->auth('read', 'a/a@ann'))->{status}, 404, 'HEAD');

	my $r = $t->get('/repo/v1/chunks/default/' . random(),
		$t->auth('read', 'a/a@ann'));

	is($r->json()->{error}{code}, 'chunk_not_found', 'the code');
	is($t->get('/repo/v1/chunks/default/' . random())->{status}, 401,
		'no token');
}

# other callers have other filters

{
	my ($asked) = counts($t);

	query(random(), 'b/b@bob') for 1 .. 8;

	my ($asked2) = counts($t);

	is($asked2 - $asked, 8, 'another caller has no filter yet');
	warm('b/b@bob');
}

# --------------------------------------------------------------------------
# a PUT of a file looks up chunks in the same filters

{
	warm('p/p@pat');

	my ($asked, $hits) = counts($t);

	put_file('p/p@pat', random_bytes(++$seed, 2000)) for 1 .. 20;

	my ($asked2, $hits2) = counts($t);

	cmp_ok($asked2 - $asked, '<=', 2, 'PUTs without a statement');
	is($asked2 - $asked + $hits2 - $hits, 20, 'PUTs: all are counted');

	# a longer file with the same start is found at each worker

	my $data = random_bytes(++$seed, 400_000);

	is(put_file('p/p@pat', $data), 400_000, 'PUT: new bytes');

	for (1 .. 6) {
		$data .= random_bytes(++$seed, 1000);

		cmp_ok(put_file('p/p@pat', $data), '<', 200_000,
			"PUT: the start is found, $_");
	}

	# of another user nothing is found, with or without a filter

	is(put_file('q/q@quinn', $data), length($data),
		'PUT: nothing is found without a filter');
	warm('q/q@rose');
	is(put_file('r/r@rose', $data), length($data),
		'PUT: nothing is found in filters');
}

# --------------------------------------------------------------------------
# own uploads are found at once, at each worker, in the repo, and by the subject
# in another repo; hidden chunks cost the same as missing ones

{
	my $file = upload($t, 'a/a@ann');
	my $chunk = $file->{xorbs}[0]{chunks}[0]{hash};
	my @filled;

	is(query($chunk, 'a/a@ann'), 200, "own upload, $_") for 1 .. 8;

	warm('a/a@ann');
	is(query($chunk, 'a/a@ann'), 200, "own upload, with a filter, $_")
		for 1 .. 4;

	# a filter stays in use after uploads: it gets their chunks

	for my $round (1 .. 8) {
		my $next = upload($t, 'a/a@ann');

		is(query($_->{chunks}[0]{hash}, 'a/a@ann'), 200,
			"added to the filters, $round")
			for $next->{xorbs}[0];

		my ($asked, $hits) = counts($t);

		query(random(), 'a/a@ann') for 1 .. 4;

		my ($asked2, $hits2) = counts($t);

		push @filled, $hits2 - $hits;
	}

	cmp_ok((grep { $_ >= 3 } @filled), '>=', 6,
		"used after uploads: @filled");

	warm('a/a@eve');
	is(query($chunk, 'a/a@eve'), 200, "the repo's, $_") for 1 .. 4;

	warm('c/c@ann');
	is(query($chunk, 'c/c@ann'), 200, "the subject's, $_") for 1 .. 4;

	# bob

	my ($asked, $hits) = counts($t);

	is(query($chunk, 'b/b@bob'), 404, "hidden, $_") for 1 .. 50;

	my ($asked2, $hits2) = counts($t);

	is($asked2 - $asked, 0, 'hidden: no statement, as for a missing chunk');
	is($hits2 - $hits, 50, 'hidden: by the filter');

	# a filter from before the loss of rights

	is($t->http('DELETE', "/repo/v1/files/$file->{hash}",
		$t->auth('delete', 'a/a'))->{status}, 204,
		'removed from the repo');
	$t->sql("DELETE FROM xet.xorb_repos");
	is(query($chunk, 'a/a@eve'), 404, "removed from the repo, $_")
		for 1 .. 4;
	is(query($chunk, 'c/c@ann'), 200, 'the subject has sent it');
	$t->sql("DELETE FROM xet.xorb_subjects");
	is(query($chunk, 'c/c@ann'), 404, "no longer, $_") for 1 .. 4;
}

# --------------------------------------------------------------------------
# an upload changes the filters of its caller only

{
	my @callers = map { "f$_/f\@fay$_" } 1 .. 40;

	warm($_) for @callers;
	upload($t, 'a/a@ann');

	my ($asked) = counts($t);

	query(random(), $_) for @callers;

	my ($asked2) = counts($t);

	is($asked2 - $asked, 0, 'other filters stay in use after an upload');
}

# --------------------------------------------------------------------------
# a damaged xorb, and its repair

{
	my $file = upload($t, 'a/a@ann');
	my $xorb = $file->{xorbs}[0];
	my $chunk = $xorb->{chunks}[0]{hash};

	warm('a/a@ann');
	is(query($chunk, 'a/a@ann'), 200, 'intact');
	$t->sql('UPDATE xet.xorbs SET damaged_at = now() WHERE hash = '
		. "'\\x" . plain_hash($xorb->{hash}) . "'");
	is(query($chunk, 'a/a@ann'), 404, 'damaged');
	$t->sql('UPDATE xet.xorbs SET damaged_at = NULL');
	is(query($chunk, 'a/a@ann'), 200, 'repaired');
}

# --------------------------------------------------------------------------
# public files, on two machines: within "valid", and hidden again at once

{
	warm('b/b@bob', $far);

	my $file = upload($t, 'p/p@pat');
	my $chunk = $file->{xorbs}[0]{chunks}[0]{hash};

	is(query($chunk, 'b/b@bob', $far), 404, 'not public yet');
	warm('b/b@bob');
	$t->sql("UPDATE xet.repos SET public = true WHERE name = 'p/p'");
	is(query($chunk, 'b/b@bob'), 404, 'public: a filter from before');

	ok(wait_for(20, sub {
		warm('b/b@bob', $far);
		query($chunk, 'b/b@bob', $far) == 200;
	}), 'public: found after "valid" at most');

	warm('b/b@bob', $far);
	is(query($chunk, 'b/b@bob', $far), 200, 'public: with a filter');
	$t->sql("UPDATE xet.repos SET public = false WHERE name = 'p/p'");
	is(query($chunk, 'b/b@bob', $far), 404, 'private: at once');

	# an upload through one machine, a query through the other

	warm('a/a@ann', $far);

	my $own = upload($t, 'a/a@ann')->{xorbs}[0]{chunks}[0]{hash};

	is(query($own, 'a/a@ann'), 200, 'own upload, same machine');
	ok(wait_for(20, sub { query($own, 'a/a@ann', $far) == 200 }),
		'own upload, the other machine');
}

# --------------------------------------------------------------------------
# rows that are read before an upload and arrive after it are not kept

{
	my $gate = $t->pg_session();
	my $function = $t->sql("SELECT pg_get_functiondef(p.oid) FROM pg_proc p"
		. " WHERE p.proname = 'chunk_scope'");
	my $chunk;

	$t->sql($function =~ s/    RETURN NEXT;/    RETURN NEXT; PERFORM
		pg_advisory_xact_lock_shared(4713);/r);
	$gate->run('SELECT pg_advisory_lock(4713)');

	query(random(), 'd/d@dan') for 1 .. 15;

	my $late = $t->http_start('GET', '/repo/v1/chunks/default/' . random(),
		$t->auth('read', 'd/d@dan'));

	ok(wait_for(30, sub { $t->pg_blocked() > 0 }), 'a filter is read');
	is(query(random(), 'd/d@dan'), 404, "meanwhile, $_") for 1 .. 40;
	is($t->pg_blocked(), 1, 'only one request reads it');

	$chunk = upload($t, 'd/d@dan')->{xorbs}[0]{chunks}[0]{hash};

	$gate->close();
	is($late->response('GET', timeout => 30)->{status}, 404,
		'the late response');
	$t->sql($function);

	is(query($chunk, 'd/d@dan'), 200, "the upload is found, $_") for 1 .. 4;
}

# PostgreSQL rejects the statement: the query is asked as before

{
	my $function = $t->sql("SELECT pg_get_functiondef(p.oid) FROM pg_proc p"
		. " WHERE p.proname = 'chunk_scope'");

	$t->allow(qr/"chunk_scope" failed, SQLSTATE 22012|division by zero/);
	$t->sql($function =~ s/    RETURN NEXT;/
		PERFORM 1 \/ (scope - scope);/r);

	my $chunk = upload($t, 'e/e@eli')->{xorbs}[0]{chunks}[0]{hash};

	is(query(random(), 'e/e@eli'), 404, "no filter, $_") for 1 .. 40;
	is(query($chunk, 'e/e@eli'), 200, 'no filter: found');
	$t->sql($function);
	warm('e/g@gus');
	is(query($chunk, 'e/g@gus'), 404, 'a filter again: another caller');
}

# --------------------------------------------------------------------------
# a store without repos

{
	my $data = mix(++$seed, 300_000);
	my $file = $t->upload($data, xorb_chunks => 6);
	my @chunks = map { $_->{chunks}[0]{hash} } @{ $file->{xorbs} };

	warm(undef);

	my ($asked) = counts($t);

	is($t->get('/api/v1/chunks/default/' . random())->{status}, 404,
		'the store: a miss') for 1 .. 50;

	my ($asked2) = counts($t);

	cmp_ok($asked2 - $asked, '<', 5, 'the store: without statements');
	is($t->get("/api/v1/chunks/default/$chunks[0]")->{status}, 200,
		'the store: a hit');
}

# --------------------------------------------------------------------------
# all parts of scopes: many files, many xorbs of one file, repeated files

{
	my %session = (options => $Test::Xet::Postgres::session);

	$t->sql(<<'EOF', timeout => 120, %session);
INSERT INTO xet.repos (name) SELECT 'many/' || n FROM generate_series(1, 3) n;
INSERT INTO xet.xorbs (hash, chunk_count, raw_size, stored_size, chunk_hashes,
                       raw_ends, stored_ends)
SELECT sha256(('x' || n)::bytea), 1, 1000, 1000, sha256(('c' || n)::bytea),
       xet.le4(1000), xet.le4(1000)
  FROM generate_series(1, 1500) n;
INSERT INTO xet.chunks (hash, xorb_id, idx)
SELECT x.chunk_hashes, x.id, 0
  FROM generate_series(1, 1500) n
  JOIN xet.xorbs x ON x.hash = sha256(('x' || n)::bytea);
INSERT INTO xet.files (hash, size, term_count, packed)
SELECT sha256(('f' || n)::bytea), 0, 0, ''::bytea
  FROM generate_series(1, 700) n;
INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)
SELECT f.id, x.id, '{[0,1)}'
  FROM generate_series(1, 1500) n
  JOIN xet.xorbs x ON x.hash = sha256(('x' || n)::bytea)
  JOIN xet.files f ON f.hash = sha256(('f' || greatest(n - 800, 1))::bytea);
INSERT INTO xet.repo_files (repo_id, file_id)
SELECT r.id, f.id
  FROM generate_series(1, 700) n
  JOIN xet.files f ON f.hash = sha256(('f' || n)::bytea)
 CROSS JOIN xet.repos r
 WHERE r.name LIKE 'many/%';
INSERT INTO xet.xorb_repos (xorb_id, repo_id)
SELECT x.id, r.id
  FROM generate_series(1, 1100) n
  JOIN xet.xorbs x ON x.hash = sha256(('x' || n)::bytea)
  JOIN xet.repos r ON r.name = 'many/1';
INSERT INTO xet.xorb_subjects (xorb_id, subject, chunks)
SELECT x.id, sha256('me'), CASE n % 2 WHEN 0 THEN '{[0,)}'
                           ELSE '{[1,2)}' END::int4multirange
  FROM generate_series(1, 1100) n
  JOIN xet.xorbs x ON x.hash = sha256(('x' || n)::bytea);
EOF

	is(scope(3, 'many/2'), 1500, 'the files of a repo');
	is(scope(2, 'many/1'), 1100, 'the xorbs of a repo');
	is(scope(1, ''), 550, 'the chunks of a subject');
	is(scope(4, ''), 0, 'no public file');
	$t->sql("UPDATE xet.repos SET public = true WHERE name LIKE 'many/%'",
		%session);
	is(scope(4, ''), 1500, 'public files');

	# a public file uses one chunk of a xorb; the other one stays hidden

	$t->sql(<<'EOF');
INSERT INTO xet.xorbs (hash, chunk_count, raw_size, stored_size, chunk_hashes,
                       raw_ends, stored_ends)
SELECT sha256('part'), 2, 2000, 2000, sha256('p0') || sha256('p1'),
       xet.le4(1000) || xet.le4(2000), xet.le4(1000) || xet.le4(2000);
INSERT INTO xet.chunks (hash, xorb_id, idx)
SELECT sha256(('p' || n)::bytea), x.id, n
  FROM generate_series(0, 1) n
  JOIN xet.xorbs x ON x.hash = sha256('part');
INSERT INTO xet.files (hash, size, term_count, packed)
VALUES (sha256('part'), 0, 0, ''::bytea);
INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)
SELECT f.id, x.id, '{[1,2)}'
  FROM xet.xorbs x, xet.files f
 WHERE x.hash = sha256('part') AND f.hash = x.hash;
INSERT INTO xet.repo_files (repo_id, file_id)
SELECT r.id, f.id
  FROM xet.files f, xet.repos r
 WHERE f.hash = sha256('part') AND r.name = 'many/1';
EOF
	is(scope(4, ''), 1501, 'one chunk more');
	is(scope(3, 'many/1'), 1501, 'one chunk more in the repo');
	is(scope(2, 'many/1'), 1100, 'none of a received xorb');
	is(scope(0, '', 'true'), $t->sql('SELECT count(DISTINCT hash)'
		. ' FROM xet.chunks'), 'the store');

	for ("0, 0, 0, false, '', 'me'", "0, 0, 0, NULL, '', 'me'",
		"3, 0, 0, NULL, 'many/1', 'me'", "3, 0, 0, false, NULL, 'me'",
		"5, 0, 0, false, 'many/1', 'me'")
	{
		is($t->sql("SELECT count(*) FROM xet.chunk_scope($_)"), 0,
			"no row: $_");
	}

	is($t->sql("SELECT count(*) FROM xet.chunk_scope(1, 0, 0, false, '',"
		. " NULL) WHERE chunks = '' AND last"), 1, 'no subject');
}

# --------------------------------------------------------------------------
# a full zone; a reload

{
	my ($asked) = counts($t);

	$t->reload();
	warm('a/a@ann') for 1 .. 2;

	$t->write_conf(undef, http => Test::Xet::Token::token_directive()
		. "\n    xet_chunk_filter zone=few:64k valid=1h;");
	$t->reload();

	my $chunk = upload($t, 'a/a@ann')->{xorbs}[0]{chunks}[0]{hash};
	my $wrong = 0;

	for my $n (1 .. 240) {
		warm("r/$n\@s$n") if $n % 20 == 0;
		$wrong++ if query($chunk, "r/$n\@s$n") != 404;
		$wrong++ if query($chunk, 'a/a@ann') != 200;
	}

	is($wrong, 0, 'more filters than a zone can hold');
	cmp_ok(metrics($t)->{'xet_chunk_filter_total{result="full"}'}, '>', 0,
		'a full zone is counted');
}

$t->done();

# --------------------------------------------------------------------------

sub random { return sha256_hex('random ' . ++$seed) }

sub upload {
	my ($node, $who) = @_;

	return $node->upload(mix(++$seed, 200_000), xorb_chunks => 6,
		base => '/repo/v1', headers => $node->auth('write', $who));
}

sub query {
	my ($chunk, $who, $node) = @_;

	return ($node || $t)->get("/repo/v1/chunks/default/$chunk",
		$t->auth('read', $who))->{status};
}

# Returns the number of new bytes.

sub put_file {
	my ($who, $data) = @_;

	my $r = $t->put('/repo/v1/files', \$data, $t->auth('write', $who));

	return $r->{status} == 200 ? $r->json()->{new_bytes} : $r->summary();
}

# Sends queries until the caller's filters answer them.

sub warm {
	my ($who, $node) = @_;

	$node ||= $t;

	for (1 .. 120) {
		my (undef, $hits) = counts($node);

		defined $who ? query(random(), $who, $node)
			: $node->get('/api/v1/chunks/default/' . random());

		my (undef, $hits2) = counts($node);

		return 1 if $hits2 > $hits;
	}

	fail("no filter");
}

# Returns the numbers of dedup statements, and of queries that a filter has
# answered.

sub counts {
	my ($node) = @_;

	my $m = metrics($node);
	my $asked = 0;

	$asked += $m->{$_} for grep { /^xet_statements_total\{pg_pool="dedup"/ }
		keys %$m;

	return ($asked, $m->{'xet_chunk_filter_total{result="hit"}'});
}

# Returns the number of chunks in all parts of a scope.

sub scope {
	my ($scope, $repo, $any) = @_;

	$any //= 'false';

	my ($file, $xorb, $last, $n, $parts) = (0, 0, 'f', 0, 0);
	my %seen;

	while ($last eq 'f' && $parts++ < 1000) {
		my ($row) = $t->sql("SELECT encode(chunks, 'hex'), next_file,"
			. " next_xorb, last FROM xet.chunk_scope($scope, $file,"
			. " $xorb, $any, '$repo', 'me')",
			options => $Test::Xet::Postgres::session);

		(my $chunks, $file, $xorb, $last) = split(/\|/, $row);
		$seen{$_}++ for $chunks =~ /.{16}/g;
	}

	return scalar keys %seen;
}

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Objects of other owners take as many look-ups as missing objects, and only a
# few, whatever statistics PostgreSQL has.  The test counts look-ups, since
# time on a busy machine says too little.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ module_table wait_for /;

my $t = Test::Xet->new(workers => 1);

$t->run();

my $others = 3000;

# --------------------------------------------------------------------------
# Repo "mine" has one file; other repos have thousands.  Xorbs of the store:
# "many" and "few" belong to other repos, "many" with files, "few" without;
# "part" is also used by a file of a public repo.

$t->sql(<<"EOF_SQL", timeout => 120);
INSERT INTO xet.repos (name)
SELECT 'other' || n FROM generate_series(1, $others) n;
INSERT INTO xet.repos (name) VALUES ('mine'), ('shown');
INSERT INTO xet.xorbs (hash, chunk_count, raw_size, stored_size, chunk_hashes,
                       raw_ends, stored_ends)
SELECT sha256(x.name::bytea), 1000, 1000, 9000,
       (SELECT string_agg(sha256((x.name || i)::bytea), ''::bytea ORDER BY i)
          FROM generate_series(0, 999) i),
       (SELECT string_agg(xet.le4(i), ''::bytea ORDER BY i)
          FROM generate_series(1, 1000) i),
       (SELECT string_agg(xet.le4(9 * i), ''::bytea ORDER BY i)
          FROM generate_series(1, 1000) i)
  FROM unnest(ARRAY[ 'many', 'few', 'part', 'mine' ]
              || ARRAY(SELECT 'x' || n FROM generate_series(1, 40) n))
         AS x(name);
INSERT INTO xet.chunks (hash, xorb_id, idx)
SELECT sha256((n.name || '0')::bytea), x.id, 0
  FROM unnest(ARRAY[ 'many', 'few', 'part', 'mine' ]) AS n(name)
  JOIN xet.xorbs x ON x.hash = sha256(n.name::bytea);
INSERT INTO xet.chunks (hash, xorb_id, idx)
SELECT sha256('often'), x.id, 1
  FROM generate_series(1, 40) n
  JOIN xet.xorbs x ON x.hash = sha256(('x' || n)::bytea);
INSERT INTO xet.files (hash, size, term_count, packed)
SELECT sha256(('file' || n)::bytea), 0, 0, ''::bytea
  FROM generate_series(1, $others) n
UNION ALL
SELECT sha256(n::bytea), 0, 0, ''::bytea
  FROM unnest(ARRAY[ 'all', 'one', 'mine', 'shown' ]) n;
INSERT INTO xet.repo_files (repo_id, file_id)
SELECT r.id, f.id
  FROM generate_series(1, $others) n
  JOIN xet.files f ON f.hash = sha256(('file' || n)::bytea)
  JOIN xet.repos r ON r.name = 'other' || n
UNION ALL
SELECT r.id, f.id
  FROM xet.repos r, xet.files f
 WHERE f.hash = sha256('all') AND r.name LIKE 'other%'
UNION ALL
SELECT r.id, f.id
  FROM xet.files f, xet.repos r
 WHERE (f.hash, r.name) IN ((sha256('one'), 'other7'),
                            (sha256('mine'), 'mine'),
                            (sha256('shown'), 'shown'));
INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)
SELECT f.id, x.id, '{[0,1000)}'::int4multirange
  FROM xet.files f, xet.xorbs x
 WHERE x.hash = sha256('many') AND f.hash NOT IN (sha256('mine'),
                                                  sha256('shown'))
UNION ALL
SELECT f.id, x.id, '{[0,500)}'::int4multirange
  FROM xet.files f, xet.xorbs x
 WHERE (f.hash, x.hash) IN ((sha256('shown'), sha256('part')),
                            (sha256('all'), sha256('part')));
INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)
SELECT f.id, x.id, '{[0,1000)}'::int4multirange
  FROM generate_series(1, 40) n
  JOIN xet.xorbs x ON x.hash = sha256(('x' || n)::bytea)
  JOIN xet.files f ON f.hash = sha256(('file' || n)::bytea);
INSERT INTO xet.xorb_repos (xorb_id, repo_id)
SELECT x.id, r.id
  FROM xet.xorbs x, xet.repos r
 WHERE x.hash IN (sha256('many'), sha256('few')) AND r.name LIKE 'other%'
UNION ALL
SELECT x.id, r.id
  FROM xet.xorbs x, xet.repos r
 WHERE x.hash = sha256('mine') AND r.name = 'mine';
UPDATE xet.repos SET public = true WHERE name = 'shown';
EOF_SQL

# Returns the cost of one statement in a session like the module's: the rows
# that the statement returns, index look-ups by table, and the rows read in
# these look-ups, without the row of xet.hidings, which each statement reads.

sub work {
	my ($statement) = @_;

	# the first execution includes planning, which checks permissions of
	# functions; the first temporary table has a cost of its own, too

	my (undef, $rows, $scans, $read) = $t->sql("SET enable_seqscan = off;"
		. " CREATE TEMP TABLE first ();"
		. " SET enable_bitmapscan = off;"
		. " SET plan_cache_mode = force_generic_plan;"
		. " PREPARE p AS SELECT count(*) FROM $statement;"
		. " EXECUTE p;"
		. " CREATE TEMP TABLE was AS SELECT relid, idx_scan,"
		. " idx_tup_fetch, seq_tup_read FROM pg_stat_xact_user_tables;"
		. " EXECUTE p;"
		. " CREATE TEMP TABLE did AS"
		. " SELECT s.relname AS name,"
		. " sum(s.idx_scan - coalesce(w.idx_scan, 0)) AS scans,"
		. " sum(coalesce(s.idx_tup_fetch, 0) + s.seq_tup_read"
		. " - coalesce(w.idx_tup_fetch, 0)"
		. " - coalesce(w.seq_tup_read, 0)) AS read"
		. " FROM pg_stat_xact_user_tables s"
		. " LEFT JOIN was w USING (relid)"
		. " WHERE s.schemaname = 'xet' AND s.relname <> 'hidings'"
		. " GROUP BY 1;"
		. " SELECT string_agg(name || ' ' || scans, ', ' ORDER BY name)"
		. " FROM did WHERE scans > 0;"
		. " SELECT sum(read) FROM did");

	return { rows => $rows, scans => $scans, read => $read };
}

sub alike {
	my ($name, $most, $statement, $missing, @hidden) = @_;

	my $w = work(sprintf($statement, $missing));

	is($w->{rows}, 0, "$name: missing");
	cmp_ok($w->{read}, '<=', 2, "$name: missing: rows read");

	for (@hidden) {
		my $h = work(sprintf($statement, $_));

		is($h->{rows}, 0, "$name: $_: hidden");
		is($h->{scans}, $w->{scans}, "$name: $_: the same look-ups");
		cmp_ok($h->{read}, '<=', $w->{read} + $most,
			"$name: $_: rows read");
	}
}

sub costs {
	my ($name, $most, $statement) = @_;

	my $w = work($statement);

	is($w->{rows}, 1, "$name: visible");
	cmp_ok($w->{read}, '<=', $most, "$name: rows read")
		or diag($w->{scans});
}

my $shard = 'xet.shard_slices(ARRAY[sha256(\'%s\')], ARRAY[0], ARRAY[1000],'
	. " true, false, false, 'mine', 'me') WHERE own";

for my $state ('as it was made', 'analyzed', 'analyzed empty') {

	if ($state eq 'analyzed') {
		$t->sql('ANALYZE');

	} elsif ($state eq 'analyzed empty') {
		$t->sql("DELETE FROM pg_statistic WHERE starelid IN"
			. " (SELECT oid FROM pg_class WHERE relnamespace ="
			. " 'xet'::regnamespace); UPDATE pg_class"
			. " SET reltuples = 0, relpages = 1"
			. " WHERE relnamespace = 'xet'::regnamespace"
			. " AND relkind IN ('r', 'i')");
	}

	# files

	for ([ 'file_terms', "xet.file_terms(sha256('%s'), 0, 9, false,"
			. " 'mine')" ],
		[ 'file_open', "xet.file_open(sha256('%s'), 0, false,"
			. " 'mine')" ],
		[ 'files_terms', "xet.files_terms(ARRAY[sha256('%s')], 1, 0,"
			. " false, 'mine')" ],
		[ 'files_open', "xet.files_open(ARRAY[sha256('%s')], false,"
			. " 'mine')" ])
	{
		my ($name, $statement) = @$_;

		alike("$state: $name", 2, $statement, qw/ none all one /);
		costs("$state: $name, own", 4, sprintf($statement, 'mine'));
		costs("$state: $name, public", 4, sprintf($statement,
			'shown'));
		costs("$state: $name, of all of them", 4,
			sprintf($statement, 'all') =~ s/mine/other$others/r);
	}

	# xorbs: a row each of xorbs and repos, the 64 oldest and newest files

	alike("$state: xorb_get", 130,
		"xet.xorb_get(sha256('%s'), false, 'mine', 'me')",
		qw/ none many few /);
	alike("$state: xorb_grant", 130,
		"xet.xorb_grant(sha256('%s'), true, false, 'mine', 'me')",
		qw/ none many few /);
	costs("$state: own xorb", 4, "xet.xorb_get(sha256('mine'), false,"
		. " 'mine', 'me')");

	# a chunk is looked up in up to 16 xorbs, and these in 32 files

	alike("$state: chunk_find", 100,
		"xet.chunk_find(sha256('%s'), false, false, 'mine', 'me')",
		qw/ none0 many0 few0 often /);
	costs("$state: own chunk", 20,
		"xet.chunk_find(sha256('mine0'), false, false, 'mine', 'me')");
	costs("$state: public chunk", 30,
		"xet.chunk_find(sha256('part0'), false, false, 'mine', 'me')");

	# terms of shards, and slices of the same size

	alike("$state: shard_slices", 132, $shard, qw/ none many few /);
}

my %slices = map { $_ => scalar $t->sql('SELECT count(*) || \' \''
	. ' || sum(length(hashes)) || \' \' || sum(length(raw_ends))'
	. ' || \' \' || sum(length(stored_ends)) FROM '
	. sprintf($shard =~ s/ WHERE own//r, $_)) } qw/ none many few /;

is($slices{none}, '1 32000 4004 4004', 'a slice of a missing xorb');
is($slices{$_}, $slices{none}, "$_: as large") for qw/ many few /;
isnt($t->sql("SELECT hashes FROM " . sprintf($shard =~ s/ WHERE own//r,
	'none')), $t->sql("SELECT hashes FROM "
	. sprintf($shard =~ s/ WHERE own//r, 'none')), 'it is noise');

# a range past the end of a xorb, and a range past the maximum of any xorb

for (qw/ none many few /) {
	is($t->sql('SELECT count(*) FROM ' . sprintf($shard =~ s/ WHERE own//r
		=~ s/1000/1001/r, $_) . ' WHERE length(hashes) = 32032'), 1,
		"$_: a range outside");
	is($t->sql('SELECT count(*) FROM ' . sprintf($shard =~ s/ WHERE own//r
		=~ s/1000/9000/r, $_) . ' WHERE hashes IS NULL'), 1,
		"$_: past the maximum of a xorb");
}

# --------------------------------------------------------------------------
# a store without repos has no cost for access checks

my %statements = map { $_->{name} => $_->{sql} }
	@{ module_table('statements') };

for my $name (qw/ file_terms file_open files_terms files_open /) {
	for ('', '_all') {
		my $statement = $statements{"$name$_"};
		my @params = map { 'NULL' } $statement =~ /\$/g;

		my $plan = join("\n", $t->sql(
			"SET plan_cache_mode = force_generic_plan;"
			. " SET enable_seqscan = off;"
			. " PREPARE p AS $statement; EXPLAIN EXECUTE p("
			. join(', ', @params) . ')'));

		like($plan, qr/files_hash|files_\d_(?:hash|pkey)/,
			"$name$_: looked up");
		is($plan =~ /repo/ ? 1 : 0, $_ eq '' ? 1 : 0,
			"$name$_: checks for repos");
	}
}

# --------------------------------------------------------------------------
# a file is public as long as one of its repos is public, however many repos
# have it

sub seen {
	return scalar $t->sql("SELECT count(*) FROM"
		. " xet.file_open(sha256('$_[0]'), 0, false, 'mine')");
}

sub public {
	my ($repo, $public) = @_;

	is($t->sql("SELECT xet.repo_set_public('$repo', $public)"), 't',
		"$repo: public $public");
}

is(seen('all'), 0, 'files of other repos');
public("other$_", 'true') for 50, 51;
is(seen('all'), 1, 'one of thousands of repos is public');
is(seen('file50'), 1, 'all of its files are visible');
is(seen('one'), 0, 'and no other files');
public('other50', 'false');
is(seen('all'), 1, 'another of its repos is public');
is(seen('file50'), 0, 'its own file is not visible');
public('other51', 'false');
is(seen('all'), 0, 'none is');

is($t->sql("SELECT xet.repo_add('shown', sha256('one'))"), 't', 'added');
is(seen('one'), 1, 'to a public one');
is($t->sql("SELECT xet.repo_forget('shown', sha256('one'))"), 't',
	'removed from the repo');
is(seen('one'), 0, 'and invisible');
is($t->sql("SELECT xet.repo_delete('shown')"), 't', 'deleted');
is(seen('shown'), 0, 'invisible after its repo is deleted');

# a repo becomes public while a file is being added to it, and the reverse

my ($one, $two) = map { $t->pg_session() } 1 .. 2;

sub waits {
	ok(wait_for(10, sub { $t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE wait_event_type = 'Lock'") == 1 }), "$_[0]: waits");
}


for my $public ('true', 'false') {
	my $file = "file$public";

	$t->sql("INSERT INTO xet.files (hash, size, term_count, packed)"
		. " VALUES (sha256('$file'), 0, 0, '')");

	$one->run('BEGIN');
	$one->run("SELECT xet.repo_add('other9', sha256('$file'))");
	$two->send("SELECT xet.repo_set_public('other9', $public)");
	waits("public $public behind a file");
	$one->run('COMMIT');
	$two->run('SELECT 1');
	is(seen($file), $public eq 'true' ? 1 : 0,
		"added while public becomes $public");

	$file .= '2';
	$t->sql("INSERT INTO xet.files (hash, size, term_count, packed)"
		. " VALUES (sha256('$file'), 0, 0, '')");

	my $not = $public eq 'true' ? 'false' : 'true';

	$one->run('BEGIN');
	$one->run("SELECT xet.repo_set_public('other9', $not)");
	$two->send("SELECT xet.repo_add('other9', sha256('$file'))");
	waits("a file behind public $not");
	$one->run('COMMIT');
	$two->run('SELECT 1');
	is(seen($file), $not eq 'true' ? 1 : 0,
		"added after public becomes $not");
	public('other9', $public);
}

$t->done();

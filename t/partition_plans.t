#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Tables in partitions: each statement of the module, and each of the functions
# that it calls, looks into one partition where it has a key; those that look
# into all, and the keys that lead from one table to another by a column that it
# is not cut by, are those that docs/design.md tells.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::Xet;
use Test::Xet::Process qw/ module_table root slurp /;

use JSON::PP ();

delete $ENV{XET_TEST_PARTITIONS};

my $t = Test::Xet->new(xet => 0, pg => 1);

$t->pg_start();
$t->pg()->migrate(4);

# What is told: rows "| `who` | `table` |" between the two marks.

my ($told) = slurp(root() . '/docs/design.md')
	=~ /^### Partitions$(.*?)^##/ms;
my %told = map { $_ => 1 } ($told // '') =~ /^\| `([^|]+)` \|/mg;

my @keys = $t->sql(
	"SELECT c.relname, a.attname FROM pg_partitioned_table p"
	. " JOIN pg_class c ON c.oid = p.partrelid JOIN pg_attribute a"
	. " ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]"
	. " WHERE c.relnamespace = 'xet'::regnamespace ORDER BY 1");

is_deeply(\@keys, [ qw/ chunks|hash file_names|hash file_xorbs|xorb_id files|id
	terms|file_id xorb_names|hash xorbs|id / ], 'what is cut, and by what');

# --------------------------------------------------------------------------
# keys: by the columns by which both tables are cut, if both are

my %found = map { $_ => 1 } $t->sql(<<'EOF_SQL');
SELECT format('%s (%s)', f.relname, a.attname)
  FROM pg_constraint c
  JOIN pg_class f ON f.oid = c.conrelid
  JOIN pg_partitioned_table p ON p.partrelid = c.conrelid
  JOIN pg_partitioned_table q ON q.partrelid = c.confrelid
  JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
 WHERE c.contype = 'f' AND c.conparentid = 0
   AND NOT EXISTS (SELECT FROM unnest(c.conkey, c.confkey) AS k(own, other)
                    WHERE k.own = p.partattrs[0]
                      AND k.other = q.partattrs[0])
EOF_SQL

# --------------------------------------------------------------------------
# rows that the statements need, and so many others that plans are made as for
# large tables

$t->sql(<<'EOF_SQL', timeout => 120);
INSERT INTO xet.xorbs (hash, chunk_count, raw_size, stored_size, chunk_hashes,
                       raw_ends, stored_ends, tag)
SELECT sha256(('x' || n)::bytea), 4, 400, 400,
       (SELECT string_agg(sha256((n || 'c' || i)::bytea), ''::bytea ORDER BY i)
          FROM generate_series(0, 3) i),
       xet.le4(100) || xet.le4(200) || xet.le4(300) || xet.le4(400),
       xet.le4(100) || xet.le4(200) || xet.le4(300) || xet.le4(400), 7
  FROM generate_series(1, 40) n;
INSERT INTO xet.xorbs (hash, chunk_count, raw_size, stored_size, chunk_hashes,
                       raw_ends, stored_ends)
SELECT h.hash, 1, 1, 1, h.hash, xet.le4(1), xet.le4(1)
  FROM generate_series(1, 10000) n, LATERAL (SELECT sha256(int4send(n)) AS hash
                                              OFFSET 0) h;
INSERT INTO xet.chunks
SELECT substring(x.chunk_hashes FROM 1 FOR 32), x.id, 0 FROM xet.xorbs x;
INSERT INTO xet.chunks
SELECT sha256('often'), x.id, 1 FROM xet.xorbs x WHERE x.chunk_count = 4;
INSERT INTO xet.repos (name, public) VALUES ('a', false), ('b', true),
                                            ('d', false);
CREATE FUNCTION public.term(xorb text) RETURNS bytea LANGUAGE sql AS $$
SELECT sha256(xorb::bytea) || '\x00000300' || xet.le4(0) || xet.le4(400)
       || xet.le4(400) || xet.le4(7)
$$;
INSERT INTO xet.files (hash, size, term_count, packed, held)
SELECT sha256(('f' || n)::bytea), 400, 1, public.term('x' || n), n < 20
  FROM generate_series(1, 30) n;
INSERT INTO xet.files (hash, size, term_count)
SELECT sha256('large'), 4000, 10;
INSERT INTO xet.terms
SELECT f.id, 400 * n, 400 * n + 400, public.term('x' || n)
  FROM xet.files f, generate_series(0, 9) n WHERE f.hash = sha256('large');
INSERT INTO xet.files (hash, size, term_count, held)
SELECT sha256(int4send(n)), 1, 1, true FROM generate_series(1, 10000) n;
INSERT INTO xet.terms
SELECT f.id, 0, 1, repeat('x', 52)::bytea FROM xet.files f WHERE f.size = 1;
INSERT INTO xet.file_xorbs
SELECT f.id, x.id, '{[0,1)}'
  FROM xet.files f JOIN xet.xorbs x ON x.hash = f.hash;
INSERT INTO xet.file_xorbs
SELECT f.id, x.id, '{[0,4)}'
  FROM generate_series(1, 30) n
  JOIN xet.files f ON f.hash = sha256(('f' || n)::bytea)
  JOIN xet.xorbs x ON x.hash = sha256(('x' || n)::bytea);
INSERT INTO xet.repo_files (repo_id, file_id)
SELECT r.id, f.id FROM xet.repos r, xet.files f
 WHERE r.name IN ('a', 'b') AND f.hash IN (sha256('f1'), sha256('f2'));
INSERT INTO xet.repo_files (repo_id, file_id)
SELECT r.id, f.id FROM xet.repos r, xet.files f
 WHERE r.name = 'd' AND f.hash = sha256('f3');
INSERT INTO xet.gc_files SELECT f.id FROM xet.files f
 WHERE f.hash IN (sha256('f25'), sha256('f26'));
INSERT INTO xet.charges SELECT x.id, 1, sha256('me'), x.stored_size
  FROM xet.xorbs x;
INSERT INTO xet.quotas VALUES ('repo', 'a', 1e9, 1e9);
SELECT xet.hub_create(k, 'me', 'm', true, '{}', true, '', false, 'me',
                      sha256(('repo' || k)::bytea))
  FROM unnest('{0,3}'::integer[]) AS k;
UPDATE xet.files SET sha256 = sha256('7'), sha256_proven = true
 WHERE hash = sha256('f7');
INSERT INTO xet.repo_files (repo_id, file_id, sha256)
SELECT r.id, f.id, CASE f.hash WHEN sha256('f7') THEN sha256('7')
                               WHEN sha256('f8') THEN sha256('8') END
  FROM xet.repos r, xet.files f
 WHERE r.name LIKE '\_hub/%'
   AND f.hash IN (sha256('f7'), sha256('f8'), sha256('f10'));
INSERT INTO xet.hub_loose (repo_id, file_id, since)
SELECT r.id, f.id, now() - interval '2 days' FROM xet.repos r, xet.files f
 WHERE r.name LIKE '\_hub/%' AND f.hash = sha256('f10');
INSERT INTO xet.store VALUES (true, 'store', true, xet.store_tables());
DELETE FROM xet.gc_xorbs g USING xet.xorbs x
 WHERE x.id = g.xorb_id AND x.chunk_count = 1;
DELETE FROM xet.usage_left;
ANALYZE;
ALTER ROLE xet SET session_preload_libraries = 'auto_explain';
ALTER ROLE xet SET auto_explain.log_min_duration = 0;
ALTER ROLE xet SET auto_explain.log_nested_statements = on;
ALTER ROLE xet SET auto_explain.log_analyze = on;
ALTER ROLE xet SET auto_explain.log_timing = off;
ALTER ROLE xet SET auto_explain.log_format = json;
ALTER ROLE xet SET plan_cache_mode = force_generic_plan;
EOF_SQL

# --------------------------------------------------------------------------
# each statement, by its text, with the parameters of a request

my ($x, $f) = map { my $n = $_; sub { "sha256('$n$_[0]')" } } qw/ x f /;
my $now = 'extract(epoch FROM now())::bigint';
my $list = "sha256('y'), ('\\x' || repeat('aa', 128))::bytea, %s, %s, 400, 400,"
	. " '{0,1}'::integer[], 9, ('\\x' || repeat('bb', 16))::bytea, false,"
	. " 'a', 'me', $now";
my $ends = join(' || ', map { "xet.le4($_)" } 100, 200, 300, 400);
my $files = sub { "ARRAY[0, 1]::bigint[], ARRAY[sha256('$_[0]'), sha256('f4')],"
	. " ARRAY[400, 400]::bigint[], ARRAY[sha256('1'), NULL],"
	. " ARRAY[1, 1]::bigint[], ARRAY[public.term('x5'), public.term('x5')],"
	. " ARRAY[sha256('c')], ARRAY[sha256('x5')], ARRAY[0],"
	. " ARRAY[]::bigint[], ARRAY[]::bigint[], ARRAY[]::bigint[],"
	. " ARRAY[]::bytea[]" };
my $slices = "ARRAY[" . $x->(1) . "], ARRAY[0], ARRAY[2]";
my $copies = "ARRAY[" . $x->(31) . ", " . $x->(32) . "], ARRAY[7, 8]";
my $chore = "'gc', ('\\x' || repeat('cc', 16))::bytea";

my $who = "true, '{}', true, ''";
my $hub = "0, 'me', 'm', $who";
my $bucket = "3, 'me', 'm', $who";
my $store = "'_hub/1'";
my $staged = sub {
	my ($upload, $op, $hash, $sha256) = @_;

	return "'$upload', 0, ARRAY[$op], ARRAY['d/x'::bytea],"
		. " ARRAY[400::bigint], ARRAY[$hash], ARRAY[$sha256],"
		. ' ARRAY[NULL::bigint], ARRAY[NULL::bytea],'
		. " ARRAY[NULL::bytea], 'me'";
};

my %args = (
	file_terms => [ $f->(1) . ", 0, 9, false, 'a'",
		"sha256('large'), 0, 9, false, 'a'",
		"sha256('none'), 0, 9, false, 'a'" ],
	file_terms_all => [ $f->(1) . ', 0, 9', "sha256('large'), 900, 2000" ],
	file_open => [ $f->(1) . ", 0, false, 'a'" ],
	file_open_all => [ $f->(1) . ', 0', "sha256('large'), 2000" ],
	files_terms => [ "ARRAY[" . $f->(1) . "], 1, 0, false, 'a'" ],
	files_terms_all => [ "ARRAY[" . $f->(1) . ", sha256('large')], 1, 0" ],
	files_prove => [ "ARRAY[" . $f->(1) . "], ARRAY[sha256('1')]" ],
	xorb_slices => [ "$slices, true" ],
	xorb_put => [ sprintf($list, $ends, $ends) ,
		sprintf($list, $ends, $ends) ],
	xorb_heal => [ $x->(6) . ", $ends, 300, 8,"
		. " ('\\x' || repeat('bb', 16))::bytea, 7, $now" ],
	xorb_get => [ $x->(1) . ", false, 'a', 'me'",
		"sha256('z'), false, 'a', 'me'" ],
	xorb_grant => [ $x->(1) . ", true, false, 'a', 'me'" ],
	copies_lost => [ $copies ],
	xorb_damaged => [ $copies ],
	xorb_advertised => [ "ARRAY[" . $x->(1) . ", " . $x->(2) . "]" ],
	chunk_find => [ "sha256('often'), true, false, 'a', 'me'",
		"sha256('often'), true, true, '', NULL",
		"sha256('3c0'), false, false, 'd', 'me'",
		"sha256('no'), false, false, 'a', 'me'" ],
	shard_slices => [ "$slices, true, false, false, 'a', 'me'",
		"ARRAY[" . $x->(30) . "], ARRAY[0], ARRAY[2], true, false,"
		. " false, 'c', 'you'" ],
	shard_doubts => [ "ARRAY[" . $f->(1) . "], ARRAY[public.term('x2')],"
		. ' 0, 0' ],
	shard_stage => [ "'upload of 16 byt', 0, " . $files->('s1') ],
	shard_put => [ "'upload of 16 byt', 1, " . $files->('s2')
		. ", false, 'a', 'me'",
		"'upload of one 16', 0, " . $files->('s3')
		. ", true, '', NULL" ],
	shard_unstage => [ "'upload of 16 byt'" ],
	file_delete => [ $f->(18) . ', NULL' ],
	repo_forget => [ "'a', " . $f->(2) . ', NULL' ],
	repo_delete => [ "'d', NULL" ],
	telemetry_put => [ "'e', 's', 'u', '{}'" ],
	zt_get => [ $f->(1) . ', 1, true' ],
	zt_put => [ $f->(1) . ", 1, '1', NULL" ],
	zt_reports_get => [ $f->(1) . ', 1, 0, 9' ],
	zt_reports_put => [ $f->(1) . ", 1, '{1}', ARRAY['2'::bytea]" ],
	chore_take => [ "$chore, 1000, 1000" ],
	chore_keep => [ "$chore, 1, 1, 1000, 'c', '{}', NULL" ],
	chore_done => [ "$chore, 1, '{}'" ],
	gc_files => [ '10, NULL' ],
	gc_xorbs => [ '0, 100, NULL' ],
	usage_settle => [ '20, NULL' ],
	gc_copies => [ 20 ],
	gc_removed => [ "$copies, NULL" ],
	orphans_due => [ 'false' ],
	copies_unknown => [ $copies ],
	orphans => [ $copies ],
	orphans_found => [ '1, true' ],
	scrub_next => [ 0 ],
	heal_next => [ 0 ],
	heal_later => [ '1, 7' ],
	xorb_whole => [ $x->(1) . ', 7' ],
	figures => [ '0, 0, 10' ],
	repo_figures => [ '0, 0, 10' ],
	quota_any => [ '' ],
	quota_look => [ "'stored', 10, " . $x->(1) . ", false, 'a', 'me'",
		"'logical', 10, " . $f->(1) . ", false, 'a', 'me'" ],
	usage_get => [ "false, 'a', 'me'" ],
	sweep => [ '' ],
	write_probe => [ '' ],
	in_time => [ '99999999999999' ],
	hub_create => [ "0, 'me', 'n', $who, false, 'me', 'new', 0,"
		. " 'me', 100000" ],
	hub_begin => [ "0, 'me', 'n3', $who, 'n3'" ],
	hub_unstage => [ "'n3', 5" ],
	hub_delete => [ "0, 'me', 'n2', $who, NULL" ],
	hub_move => [ "0, 'me', 'n', $who, true, 'me', 'n2', NULL" ],
	hub_settings => [ "$hub, true, false, NULL",
		"0, 'me', 'n2', $who, true, true, NULL" ],
	hub_info => [ "$hub, 'main', true, NULL",
		"$bucket, 'main', true, NULL" ],
	hub_list => [ "0, NULL, NULL, $who, 10, NULL" ],
	hub_tree_rows => [ map { "$_, 'main', '', true, true, NULL, 10, 10" }
		$hub, $bucket ],
	hub_paths_rows => [ "$hub, 'main', ARRAY['d/x'::bytea], true" ],
	hub_preupload => [ "$hub, 'main', ARRAY['d/x'::bytea],"
		. ' ARRAY[400::bigint]' ],
	hub_refs_get => [ "$hub, NULL" ],
	hub_commits_get => [ "$hub, 'main', NULL, 10, NULL" ],
	hub_ref_put => [ "$hub, 'heads/b', 'main', false, NULL,"
		. " 'me'" ],
	hub_enter => [ "$hub, 'main', true" ],
	hub_resolve => [ "$hub, 'main', 'd/x'" ],
	hub_page_list => [ "NULL, NULL, NULL, $who, NULL, 10" ],
	hub_page_repo => [ map { "$_, 'main', ''" } $hub, $bucket ],
	hub_page_tree => [ map { "$_, 'main', '', NULL, 10" } $hub, $bucket ],
	hub_page_refs => [ "$hub, 10" ],
	hub_known => [ "$store, ARRAY[sha256('7'), sha256('8')]" ],
	hub_here => [ "$store, ARRAY[sha256('7'), sha256('8')]" ],
	hub_stage => [ $staged->('c', 2, 'NULL::bytea', "sha256('7')"),
		$staged->('u', 2, 'NULL::bytea', "sha256('8')"),
		$staged->('b', 3, $f->(7), 'NULL::bytea') ],
	hub_claims => [ "$store, 'c', 'me'", "$store, 'u', 'me'" ],
	hub_proven => [ "$store, " . $f->(8) . ", sha256('8')" ],
	hub_commit => [ "$hub, 'main', 'c', NULL, 'me', 'title', '', 1, NULL,"
		. " 'me', 100000" ],
	hub_batch => [ "$bucket, 'b', 1, 'me', 100000" ],
	hub_duplicate => [ "$hub, 3, 'me', 'm', 'me', ARRAY[" . $f->(7)
		. "], ARRAY[sha256('7')]" ],
	tags_take => [ '' ],
	ping => [ '' ],
	wal => [ '' ]
);

# and of those that only the command line calls, or others do

my %more = (
	repo_add => [ "'a', " . $f->(9) ],
	repo_list => [ '' ],
	repo_named => [ "'a', 0, 'me', 'm'", "NULL, 0, 'me', 'n2'" ],
	repo_set_public => [ "'a', true" ],
	file_list => [ "false, 'a'", "true, ''" ],
	gc_preview => [ 0 ],
	files_release => [ '' ],
	orphans_from => [ '' ],
	usage_total => [ '' ],
	usage_recount => [ '' ],
	xorb_healed => [ $x->(7) . ", $ends, 300, 8,"
		. " ('\\x' || repeat('bb', 16))::bytea, 7" ],
	hub_claim => [ "(SELECT id FROM xet.repos WHERE name = $store),"
		. " ARRAY[" . $f->(8) . "], ARRAY[sha256('8')]" ],
	xorb_whole => [ $x->(7) . ', 7' ]
);

my @statements = @{ module_table('statements') };

is_deeply([ sort map { $_->{name} } @statements ], [ sort keys %args ],
	'each statement has parameters here');

# those that take rows away come behind the others; what is read of a Hub was
# committed before

my %late = (hub_stage => -4, hub_claims => -3, hub_proven => -2,
	hub_commit => -1, map { $_ => 1 }
	qw/ file_delete gc_files gc_xorbs hub_delete repo_delete /);
my @calls;

for my $s (sort { ($late{$a->{name}} // 0) <=> ($late{$b->{name}} // 0) }
	@statements)
{
	my $n = 0;

	for my $values (@{ $args{$s->{name}} }) {
		my $with = $values ne '' ? "($values)" : '';

		push @calls, 'PREPARE p AS ' . $s->{sql}, "EXECUTE p$with",
			'DEALLOCATE p';
	}
}

push @calls, map { my $name = $_; map { "SELECT * FROM xet.$name($_)" }
	@{ $more{$name} } } sort keys %more;

my $before = length($t->pg()->log());

# each by itself, or the text of a plan is that of all

$t->write_file('calls.sql', join(";\n", @calls) . ";\n");
$t->sql($t->dir() . '/calls.sql', file => 1, user => 'xet');

my @plans = plans(substr($t->pg()->log(), $before));

cmp_ok(scalar @plans, '>', 200, 'plans: ' . scalar @plans);

# --------------------------------------------------------------------------
# each function that reads or writes these tables was called

my %called = map { $_->{who} => 1, map { $_ => 1 } @{ $_->{callers} } } @plans;

is(join(' ', grep { !$called{$_} } $t->sql("SELECT p.proname FROM pg_proc p"
	. " WHERE p.pronamespace = 'xet'::regnamespace"
	. " AND p.prorettype <> 'trigger'::regtype"
	. " AND p.proname <> 'store_tables' AND p.prosrc ~"
	. " 'xet\\.(xorbs|files|chunks|terms|file_xorbs|xorb_names|file_names)"
	. "\\M' ORDER BY 1")), '', 'each function was called');

# --------------------------------------------------------------------------
# who looks into several partitions in one go

for my $plan (@plans) {
	for my $table (wide($plan->{plan})) {
		$found{"$plan->{who}: $table"} = $plan->{text};
	}
}

is(join(', ', sort grep { !$told{$_} } keys %found), '',
	'all that look into several partitions are told')
	or diag(map { "$_: $found{$_}\n" } grep { !$told{$_} }
		sort keys %found);
is(join(', ', sort grep { !$found{$_} } keys %told), '',
	'and all that is told is so');

$t->done();

# --------------------------------------------------------------------------

# { who, callers, text, plan } of each statement in the log.

sub plans {
	my ($log) = @_;

	my @found;

	while ($log =~ /LOG:\ \ duration:\ \S+\ ms\ \ plan:\n((?:\t.*\n)+)
		((?:\S+\ \S+\ \S+\ \[\d+\]\ CONTEXT:\ .*\n(?:\t.*\n)*)?)/gx)
	{
		my ($json, $context) = ($1, $2);
		my $plan = JSON::PP::decode_json($json);
		my @callers = $context
			=~ /(?:SQL function "|PL\/pgSQL function )(\w+)/g;
		my $text = $plan->{'Query Text'};

		push @callers, $text =~ /xet\.(\w+)\(/g unless @callers;
		$callers[0] = 'a key' if $text =~ /OPERATOR\(pg_catalog\./;

		push @found, { who => $callers[0] // 'nobody', text => $text,
			callers => \@callers, plan => $plan->{Plan} };
	}

	return @found;
}

# The tables of which a part of a plan reads more than one partition in a turn.

sub wide {
	my ($node) = @_;

	my @children = @{ $node->{Plans} || [] };
	my @wide = map { wide($_) } @children;

	return @wide unless $node->{'Node Type'} =~ /\A(?:Merge )?Append\z/;

	my ($turns, %read) = ($node->{'Actual Loops'});

	for my $child (@children) {
		my $table = leaf($child) // next;

		$read{$table =~ s/_\d+\z//r} += $child->{'Actual Loops'};
	}

	return @wide, grep { $read{$_} > $turns } sort keys %read;
}

# The partition that a part of a plan reads, sorted or not.

sub leaf {
	my ($node) = @_;

	my $table = $node->{'Relation Name'} // '';

	return leaf($node->{Plans}[0]) if $node->{'Node Type'} =~ /Sort\z/;
	return $table =~ /_\d+\z/ ? $table : undef;
}

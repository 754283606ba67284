#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Hub statements with 200 repos, one of them with 100,000 paths.  The number of
# rows that a statement reads depends on its result, even with a cached plan
# that was made while the tables were empty.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ module_table /;

use JSON::PP ();

my $t = Test::Xet->new(xet => 0, pg => 1);

$t->pg_start();
$t->pg()->migrate();

my $paths = 100_000;

$t->sql(<<'EOF_SQL');
INSERT INTO xet.store VALUES (true, 'store', true, xet.store_tables());
SELECT xet.hub_create(ROW(k, 'me', 'm', true, '{}', true, ''), false, 'me',
                      sha256(('repo' || k)::bytea))
  FROM unnest('{0,3}'::integer[]) AS k;
CREATE FUNCTION public.file(n bigint) RETURNS bytea
    LANGUAGE sql IMMUTABLE AS $$ SELECT sha256(('f' || n)::bytea) $$;
CREATE FUNCTION public.digest(n bigint) RETURNS bytea
    LANGUAGE sql IMMUTABLE AS $$ SELECT sha256(('d' || n)::bytea) $$;
CREATE FUNCTION public.some(of bigint, n bigint) RETURNS void
    LANGUAGE sql AS $$
INSERT INTO xet.files (hash, size, term_count, sha256, sha256_proven)
SELECT public.file(i), 400, 1, public.digest(i), true
  FROM generate_series(of, n) i;
INSERT INTO xet.repo_files (repo_id, file_id, sha256)
SELECT r.id, f.id, f.sha256 FROM xet.repos r, xet.files f
 WHERE r.name IN ('_hub/1', '_hub/2')
ON CONFLICT DO NOTHING;
INSERT INTO xet.hub_loose (repo_id, file_id)
SELECT rf.repo_id, rf.file_id FROM xet.repo_files rf
ON CONFLICT DO NOTHING;
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                           sha256, made)
SELECT r, 0, 'd' || i % 100 || '/f' || i, 1, 'd' || i % 100,
       xet.hub_hash(public.file(i)), 400, public.digest(i),
       (SELECT c.oid FROM xet.hub_commits c WHERE c.repo_id = r LIMIT 1)
  FROM generate_series(of, n) i, generate_series(1, 2) r;
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made)
SELECT r, 0, 'd' || i, 1, '', ''
  FROM generate_series(0, 99) i, generate_series(1, 2) r
ON CONFLICT DO NOTHING;
UPDATE xet.hub_lines SET files = n WHERE repo_id <= 2;
$$;
SELECT public.some(1, 10);
EOF_SQL

# --------------------------------------------------------------------------
# the statements, each with arguments of a request, and the number of rows that
# it may read

my $who = "true, '{}', true, ''";
my $hub = "0, 'me', 'm', $who";
my $bucket = "3, 'me', 'm', $who";
my $n = 0;

sub staged {
	my ($op, $hash, $sha256, $path, $upload, $size) = @_;

	return "'$upload', 0, ARRAY[$op], ARRAY['$path'::bytea],"
		. ' ARRAY[' . ($size // 400) . '::bigint],'
		. " ARRAY[$hash], ARRAY[$sha256],"
		. ' ARRAY[NULL::bigint], ARRAY[NULL::bytea],'
		. " ARRAY[NULL::bytea], 'me'";
}

# a branch that does not contain the first commit, and the id of this commit

my @other = ('side', $t->sql("SELECT encode(c.oid, 'hex')"
	. ' FROM xet.hub_commits c WHERE c.repo_id = 1'));

$t->sql("SELECT xet.hub_ref_put(ROW($hub), 'heads/side', 'main', 0, 'me',"
	. ' NULL, NULL)');

my %most = (hub_tree_rows => 6000, hub_tree_end => 6000, hub_list => 2000,
	hub_own => 2000, hub_commits_get => 2000, hub_info => 2000);
my %one = (
	hub_begin => sub { "0, 'me', 'f$_[0]', $who, 'z$_[0]'" },
	hub_create => [ sub { "0, 'me', 'n$_[0]', $who, false, 'me',"
			. " 'new$_[0]', 0, 'me', 100000" },
		sub { "0, 'me', 'f$_[0]', $who, false, 'me',"
			. " 'z$_[0]', 1, 'me', 100000" } ],
	hub_delete => sub { "0, 'me', 'o$_[0]', $who, NULL" },
	hub_move => sub {
		"0, 'me', 'n$_[0]', $who, true, 'me', 'o$_[0]', NULL" },
	hub_settings => [ sub { "$hub, true, false, NULL" },
		sub { "0, 'me', 'f$_[0]', $who, true, true, NULL" } ],
	hub_info => [ sub { "$hub, 'main', true, NULL, true" },
		map { my $rev = $_;
			sub { "$hub, '$rev', true, NULL, true" } } @other ],
	hub_list => [ map { my $marks = $_;
		map { my $sort = $_; sub { "0, NULL, NULL, $who, 100,"
		. " NULL, '{$marks}', '{m}', '$sort', true, true" } }
		qw/ created_at bytes / } '', 'x' ],
	hub_own => sub { "0, 'me', NULL, $who, 100, NULL" },
	hub_card_wanted => sub { "$hub, '_hub/1', 'main', 'c$_[0]'" },
	hub_card_put => sub { "'_hub/1', public.file(8), '{}'" },
	hub_tree_rows => [
		sub { "$hub, 'main', 'd7', false, false, NULL, 1000, 500" },
		sub { "$hub, 'main', '', true, true, 'd50/f', 1000, 64" },
		sub { "$bucket, 'main', 'd7', true, false, NULL, 1000, 500" },
		map { my $rev = $_; (sub {
			"$hub, '$rev', 'd7', false, false, NULL, 1000, 500" },
			sub { "$hub, '$rev', '', true, true, 'd50/f', 1000,"
				. ' 64' }) } @other ],
	hub_paths_rows => [ map { my $rev = $_;
		sub { "$hub, '$rev', ARRAY['d7/f7'::bytea], true" } }
		'main', @other ],
	hub_preupload => [ map { my $all = $_;
		sub { "$hub, 'main', ARRAY['d7/f7'::bytea],"
		. " ARRAY[400::bigint], ARRAY[0::bigint], $all, $all, 'me'" } }
		'NULL', 'ARRAY[400::bigint]' ],
	hub_ignores => [ map { my $rev = $_; sub { "$hub, '$rev'" } } 'main',
		@other ],
	hub_refs_get => sub { "$hub, NULL" },
	hub_commits_get => [ map { my $what = $_;
		sub { "$hub, 'main', $what, NULL, 100, NULL" } } "'', NULL",
		"'d7/f7', NULL", "'d7', NULL", "'', '2000-01-01'" ],
	hub_changes => [ map { my $base = $_;
		sub { "$hub, 'main', $base, NULL, 100" } } 'NULL', "'main'",
		map { "'$_'" } @other ],
	hub_ref_put => [ sub { "$hub, 'heads/b$_[0]', 'main', 0, 'me', NULL,"
		. " NULL, 'me'" }, sub { "$hub, 'heads/e$_[0]', NULL, 0, 'me',"
		. " NULL, NULL, 'me'" } ],
	hub_squash => sub { "0, 'me', 'f$_[0]', $who, 'main', 'title', 'me',"
		. " NULL, 'me', 100000" },
	hub_enter => sub { "$hub, 'main', true" },
	hub_resolve => [ map { my $rev = $_; sub { "$hub, '$rev', 'd7/f7'" } }
		'main', @other ],
	hub_manifest => sub { "$hub, 'latest', false" },
	hub_blob => sub { "$hub, 'sha256:" . 'a' x 64 . "'" },
	hub_known => sub { "'_hub/1', ARRAY[public.digest(7),"
		. ' public.digest(8)]' },
	hub_keep => sub { "'_hub/1', ARRAY[public.digest(7),"
		. ' public.digest(8)], true' },
	hub_here => sub { "'_hub/1', ARRAY[public.digest(7),"
		. ' public.digest(8)]' },
	hub_stage => [ sub { staged(2, 'NULL::bytea', 'public.digest(7)',
			"d7/g$_[0]", "c$_[0]") },
		sub { staged(3, 'public.file(7)', 'NULL::bytea', "d7/g$_[0]",
			"b$_[0]") },
		sub { staged(6, 'NULL::bytea', 'NULL::bytea', 'e',
			"f$_[0]") },
		sub { staged(2, 'NULL::bytea', 'public.digest(7)',
			"x$_[0]/g", "p$_[0]") },
		sub { staged(7, 'NULL::bytea', 'NULL::bytea', "x$_[0]/h",
			"y$_[0]") =~ s!NULL(?=::bytea\], 'me'\z)!'d7/f7'!r },
		sub { staged(5, 'NULL::bytea', 'NULL::bytea',
			"d$_[0]/f$_[0]", "e$_[0]") },
		sub { staged(6, 'NULL::bytea', 'NULL::bytea', "x$_[0]",
			"q$_[0]") },
		sub { staged(5, 'NULL::bytea', 'NULL::bytea',
			"d$_[0]/f$_[0]", "g$_[0]") },
		sub { staged(2, 'NULL::bytea', 'public.digest(7)',
			"d7/g$_[0]", "h$_[0]") },
		sub { staged(2, 'NULL::bytea', "sha256('')", 'd/empty',
			"z$_[0]", 0) } ],
	hub_unstage => sub { "'f$_[0]', 5" },
	hub_claims => sub { "'_hub/1', 'c$_[0]', 'me'" },
	hub_proven => sub { "'_hub/1', ARRAY[public.file(8)],"
		. ' ARRAY[public.digest(8)]' },
	hub_commit => [ map { my ($branch, $upload) = @$_; sub { "$hub,"
		. " '$branch', '$upload$_[0]', NULL, 'me', 'title', '', 1,"
		. " NULL, 'me', 100000" } }
		map({ [ 'main', $_ ] } qw/ c p y e q /),
		map({ [ 'side', $_ ] } qw/ g h /) ],
	hub_batch => sub { "$bucket, 'b$_[0]', 1, 'me', 100000" },
	hub_duplicate => sub { "$hub, 3, 'me', 'm', 'me',"
		. ' ARRAY[public.file(7), public.file(8)],'
		. ' ARRAY[public.digest(7), public.digest(8)]' }
);

my @order = qw/ hub_begin hub_stage hub_claims hub_proven hub_commit hub_batch
	hub_unstage hub_create hub_move hub_delete /;
my %first = map { $_ => 1 } @order;
my @rows = grep { $_->{name} =~ /^hub_/ } @{ module_table('statements') };

is(join(' ', sort map { $_->{name} } @rows), join(' ', sort keys %one),
	'all statements of a Hub');

push @order, grep { !$first{$_} } sort keys %one;

my %sql = map { $_->{name} => $_->{sql} } @rows;

is(join(' ', map { $_->{name} } grep { $most{$_->{name}} && !$_->{long} }
	@rows), '', 'what may read many rows is a long read');

my @calls = map { "PREPARE $_ AS $sql{$_}" } @order;

# six runs while all tables are empty; after that PostgreSQL keeps the plans

sub calls {
	my ($round) = @_;

	return map {
		my ($name, $values) = ($_, $one{$_});

		map { "EXECUTE $name(" . $_->($round) . ')' }
			ref $values eq 'ARRAY' ? @$values : $values
	} @order;
}

push @calls, map { calls($_) } 1 .. 6;
my @log = map { "SET auto_explain.log_$_" } 'min_duration = 0',
	'nested_statements = on', 'analyze = on', 'timing = off',
	'format = json';

push @calls, "SELECT public.some(11, $paths)",
	"SELECT xet.hub_create(ROW(1, 'o', 'r' || i, $who), false, 'o',"
	. " sha256(('r' || i)::bytea)) FROM generate_series(1, 200) i", @log;

$t->sql("ALTER ROLE postgres SET session_preload_libraries = 'auto_explain'");
$t->sql('ALTER SYSTEM SET autovacuum = off');
$t->sql('SELECT pg_reload_conf()');

# the last case has the statistics of an ANALYZE during a large commit: many
# pages, and no visible rows

for my $how ('by plans of empty tables', 'by new plans',
	'by plans of rows that are not seen yet')
{
	my $round = $how =~ /empty/ ? 7 : $how =~ /new/ ? 8 : 9;
	my $mark = length($t->pg()->log());

	$t->write_file('calls.sql', join(";\n", @calls, calls($round)) . ";\n");
	$t->sql($t->dir() . '/calls.sql', file => 1, user => 'postgres',
		options => $Test::Xet::Postgres::session, timeout => 120);

	my @plans = plans(substr($t->pg()->log(), $mark));
	my %bad;

	cmp_ok(scalar @plans, '>', 100, "$how: plans: " . scalar @plans);

	for my $plan (@plans) {
		my $read = rows_read($plan->{plan});
		my $whole = whole($plan->{plan});

		$bad{"$plan->{who}: $whole"} = $plan->{text} if $whole;
		$bad{"$plan->{who}: $read rows"} = $plan->{text}
			if $read > ($most{$plan->{callers}[-1]} // 500);
	}

	is(join(', ', sort keys %bad), '', "$how: no needless reads")
		or diag(map { "$_: $bad{$_}\n" } sort keys %bad);

	$t->sql($round == 7 ? 'ANALYZE' : 'DELETE FROM pg_statistic'
		. " WHERE starelid = 'xet.hub_paths'::regclass;"
		. ' UPDATE pg_class SET reltuples = 0,'
		. ' relpages = greatest(1, pg_relation_size(oid) / 8192)'
		. " WHERE relname ~ '^hub_(paths|staged)'");
	@calls = ((map { "PREPARE $_ AS $sql{$_}" } @order), @log);
}

$t->done();

# --------------------------------------------------------------------------

# Returns { who, callers, text, plan } for each statement in the log.

sub plans {
	my ($log) = @_;

	my @found;

	while ($log =~ /LOG:\ \ duration:\ \S+\ ms\ \ plan:\n((?:\t.*\n)+)
		((?:\S+\ \S+\ \S+\ \[\d+\]\ CONTEXT:\ .*\n(?:\t.*\n)*)?)/gx)
	{
		my ($text, $context) = ($1, $2);
		my $plan = JSON::PP::decode_json($text);
		my @callers = $context
			=~ /(?:SQL function "|PL\/pgSQL function xet\.)(\w+)/g;

		push @callers, $plan->{'Query Text'} =~ /xet\.(\w+)\(/g
			unless @callers;

		push @found, { who => $callers[0] // 'nobody',
			callers => @callers ? \@callers : [ 'nobody' ],
			text => $plan->{'Query Text'}, plan => $plan->{Plan} };
	}

	return @found;
}

# Returns the number of rows read in all loops.

sub rows_read {
	my ($node) = @_;

	my $read = ($node->{'Relation Name'} ? ($node->{'Actual Rows'}
		+ ($node->{'Rows Removed by Filter'} // 0)) : 0)
		* $node->{'Actual Loops'};

	$read += rows_read($_) for @{ $node->{Plans} || [] };

	return $read;
}

# Returns a large table that the plan reads sequentially, or '' if there is
# none.

sub whole {
	my ($node) = @_;

	return $node->{'Relation Name'} if $node->{'Node Type'} eq 'Seq Scan'
		&& $node->{'Actual Loops'}
		&& $node->{'Relation Name'} =~
			/^(?:hub_(?:paths|loose)|files|repo_files)\z/;

	for my $child (@{ $node->{Plans} || [] }) {
		my $whole = whole($child);

		return $whole if $whole;
	}

	return '';
}

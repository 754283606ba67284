#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Response times do not reveal whether a private name exists.  For a caller
# without access, each SQL function that a Hub route calls makes the same
# look-ups in the same tables for a private repo, for the former name of a
# private repo, and for a name that never existed.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ module_table /;

my $t = Test::Xet->new(xet => 0, pg => 1);

$t->pg_start();
$t->pg()->migrate();

my $alice = "false, '{alice}', true, ''";

# many other rows, so that PostgreSQL does not plan for empty tables

$t->sql(<<"EOF_SQL");
INSERT INTO xet.store VALUES (true, 'store', true, xet.store_tables());
SELECT count(*) FROM generate_series(1, 300) n, LATERAL xet.hub_create(
    ROW(n % 4, 'other', 'r' || n, true, '{}', true, ''), n % 2 = 0, 'o',
    sha256(('r' || n)::bytea)) x;
SELECT xet.hub_create(ROW(k, 'alice', 'secret', $alice), true, 'alice',
                      sha256(('repo' || k)::bytea)),
       xet.hub_create(ROW(k, 'alice', 'was', $alice), true, 'alice',
                      sha256(('was' || k)::bytea))
  FROM unnest('{0,3}'::integer[]) AS k;
SELECT xet.hub_move(ROW(k, 'alice', 'was', $alice), true, 'alice', 'moved',
           NULL)
  FROM unnest('{0,3}'::integer[]) AS k;
ANALYZE;
EOF_SQL

# The callers: bob, an anonymous caller, and a caller with the token of another
# repo.  Below are the other parameters, by name.

my %who = (bob => "false, '{bob}', true, ''",
	nobody => "false, '{}', true, ''",
	'a token of another repo' => "true, '{}', false, '_hub/1'");
my %value = (rev => "'main'", path => "'x'", blobs => 'true',
	private => 'false', who => "'bob'", upload => "'c'", batches => 0,
	admin => 'true', to_owner => "'bob'", to_name => "'o'", most => 10,
	after => 'NULL', base => "''", until => 'NULL',
	deep => 'false', expand => 'true',
	paths => "ARRAY['x'::bytea]", sizes => "'{400}'", ref => "'heads/b'",
	over => 'false', parent => 'NULL', message => "'note'",
	title => "'title'", text => "''", subject => 'NULL', to_kind => 3,
	hashes => "'{}'", digests => "'{}'",
	writes => 'true', act => 'NULL', seen => 'NULL', metadata => 0,
	counted => 'true', part => 10, rest => 'NULL',
	marks => 'NULL', words => 'NULL', sort => "'changed_at'",
	whole => 'true', siblings => 'true', uploads => "'_hub/1'", does => 0,
	ignored => "'{0}'", all_sizes => "'{400}'", samples => "'{0}'",
	tag => "'latest'", layers => 'false',
	digest => "'sha256:' || repeat('0', 64)",
	repo => '(SELECT h FROM xet.hub_repos h WHERE h.id = 1)');

# These functions read many repos, or, if the caller is not the owner, none.

my %none = map { $_ => 1 } qw/ hub_list hub_own hub_card_wanted /;
my %called = map { $_->{name} => 1 } @{ module_table('statements') };

my @functions = map { [ split(/\|/, $_) ] } $t->sql(<<'EOF_SQL');
SELECT p.proname, string_agg(a.name, ' ' ORDER BY a.n)
  FROM pg_proc p
 CROSS JOIN LATERAL unnest(p.proargnames,
                coalesce(p.proargmodes::"char"[]::text[],
                         array_fill('i'::text, ARRAY[p.pronargs::integer])))
               WITH ORDINALITY AS a(name, mode, n)
 WHERE p.pronamespace = 'xet'::regnamespace AND a.mode IN ('i', 'b')
   AND 'asked' = ANY (p.proargnames)
 GROUP BY p.oid, p.proname ORDER BY p.proname;
EOF_SQL

cmp_ok(scalar @functions, '>', 15, 'functions');

my (@sql, @asked);

for my $f (@functions) {
	my ($function, $in) = @$f;

	next if $none{$function} || !$called{$function};

	my @more = grep { $_ ne 'asked' } split(/ /, $in);
	my @missing = grep { !defined $value{$_} } @more;

	is("@missing", '', "$function: a value for each parameter");

	for my $kind (0, 3) {
		for my $who (sort keys %who) {
			ask($function, \@more, $kind, $who, $_)
				for qw/ none secret was moved /;
		}
	}
}

# Look-ups by table, and the numbers of rows read; counted in the second run,
# when all plans exist.

my @work = $t->sql(<<'EOF_SQL'
CREATE TEMP TABLE first ();
SET enable_seqscan = off;
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION pg_temp.counted() RETURNS TABLE (name text, scans bigint,
                                                 read bigint)
    LANGUAGE sql
AS $$
    SELECT relname, coalesce(idx_scan, 0) + seq_scan,
           coalesce(idx_tup_fetch, 0) + seq_tup_read
      FROM pg_stat_xact_user_tables WHERE schemaname = 'xet';
$$;
CREATE FUNCTION pg_temp.work(query text) RETURNS text
    LANGUAGE plpgsql
AS $$
DECLARE
    before  jsonb;
    n       bigint;
    said    text;
BEGIN
    FOR i IN 1 .. 2 LOOP
        SELECT jsonb_object_agg(c.name, jsonb_build_array(c.scans, c.read))
          INTO before FROM pg_temp.counted() c;
        EXECUTE 'SELECT count(*) FROM ' || query INTO n;
        SELECT concat_ws(' ', string_agg(c.name || ' '
                   || c.scans - (before -> c.name ->> 0)::bigint, ', '
                   ORDER BY c.name)
                   FILTER (WHERE c.scans > (before -> c.name ->> 0)::bigint),
               '|', sum(c.read - (before -> c.name ->> 1)::bigint))
          INTO said FROM pg_temp.counted() c;
    END LOOP;
    RETURN said;
END;
$$;
EOF_SQL
	. join(";\n", map { "SELECT pg_temp.work(\$sql\$$_\$sql\$)" } @sql),
	timeout => 120);

is(scalar @work, scalar @sql, 'all have answered');

for (my $i = 0; $i < @asked; $i += 4) {
	my ($scans, $read) = split(/ ?\| ?/, $work[$i]);

	like($scans, qr/hub_/, "$asked[$i][0]: looked up")
		if $asked[$i][0] !~ /hub_(?:create|begin)/;

	for (1 .. 3) {
		my ($what, $name) = @{ $asked[$i + $_] };
		my ($s, $r) = split(/ ?\| ?/, $work[$i + $_]);

		is($s, $scans, "$what: $name: the same look-ups");
		cmp_ok($r, '<=', $read + 2, "$what: $name: rows read");
	}
}

$t->done();

# --------------------------------------------------------------------------

sub ask {
	my ($function, $more, $kind, $who, $name) = @_;

	push @asked, [ "$function, $kind: $who", $name ];
	push @sql, "xet.$function("
		. join(', ', map({ "$_ => $value{$_}" } @$more),
			"asked => ROW($kind, 'alice', '$name', $who{$who})")
		. ')';
}

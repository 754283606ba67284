#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A search, by the API or on a page, reads at most 5,000 repos for each page of
# results.  The next page continues after these repos, and all pages together
# have every match.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Table;

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth off;'), workers => 1);

$t->token_key();
$t->run();

# 12,000 models and 300 datasets; every 1,000th matches

$t->sql(<<'EOF_SQL', timeout => 120);
INSERT INTO xet.hub_repos (kind, owner, name, changed_at)
SELECT k, 'o', CASE WHEN n % 1000 = 7 THEN 'needle' ELSE 'r' END || n,
       timestamptz '2026-01-01' - n * interval '1 minute'
  FROM unnest('{0,1}'::integer[]) k,
       generate_series(1, CASE k WHEN 0 THEN 12000 ELSE 300 END) n;
INSERT INTO xet.hub_lines (repo_id, line, last)
SELECT r.id, 0, 1 FROM xet.hub_repos r;
INSERT INTO xet.hub_refs
SELECT r.id, 'heads/main', substr(sha256(int8send(1)), 1, 20)
  FROM xet.hub_repos r;
ANALYZE xet.hub_repos, xet.hub_lines, xet.hub_refs;
EOF_SQL

for my $case ([ 'the API', '/api/models?search=needle', 12 ],
	[ 'the API, nothing', '/api/models?search=nowhere', 0 ])
{
	my ($name, $uri, $n) = @$case;
	my ($pages, %found) = (0);

	while (defined $uri && $pages++ < 10) {
		my $r = $t->get($uri);

		is($r->{status}, 200, "$name: page $pages")
			or diag($r->summary());

		my @names = map { $_->{id} } @{ $r->json() };

		is(scalar(grep { $found{$_}++ } @names), 0,
			"$name: page $pages: none twice");

		($uri) = ($r->header_value('Link') // '')
			=~ m!<http://[^/]+([^>]+)>!;
	}

	is(scalar keys %found, $n, "$name: all are found");
	is($pages, 3, "$name: pages");
}

# sizes and names order up to 5,000 repos

for my $sort (qw/ usedStorage id /) {
	my $r = $t->get("/api/models?sort=$sort");

	is($r->{status}, 400, "sort=$sort: too many repos");
	like($r->{body}, qr/More than 5,000 repos/, "sort=$sort: why");
	is(scalar @{ $t->get("/api/datasets?limit=100&sort=$sort")->json() },
		100, "sort=$sort: 300 repos");
}

# --------------------------------------------------------------------------
# the number of rows that a page reads

my $who = "true, '{}', true, ''";

for my $case ([ 'the API', 10_500, "hub_list(ROW(0, NULL, 'nowhere',"
		. " $who), 100, NULL)" ],
	[ 'the API, no search', 500, "hub_list(ROW(0, NULL, NULL, $who), 100,"
		. ' NULL)' ])
{
	my ($name, $most, $call) = @$case;
	my $rows = ($t->sql("BEGIN; SELECT count(*) FROM xet.$call; SELECT"
		. ' coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)'
		. " FROM pg_stat_xact_user_tables WHERE relname = 'hub_repos';"
		. ' COMMIT', options => $Test::Xet::Postgres::session))[1];

	cmp_ok($rows, '<=', $most, "$name: rows");
}

$t->done();

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The listing of files in a repo or a bucket has exactly the bytes that
# to_json() of PostgreSQL makes from the rows, with any names, at any commit,
# and in pages of any size.  A page does not read former versions of its paths,
# and a list of repos reads only the repos that it shows.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(log => 'info',
	http => Test::Xet::Token::token_directive(), locations => <<'EOC');
location / {
            xet_hub on;
            xet_auth off;
            xet_api_base /cas;
        }

        %%CAS%%
EOC

$t->token_key();
$t->run();

is($t->post('/api/repos/create', \'{"name":"m"}',
	{ 'Content-Type' => 'application/json' })->{status}, 200, 'a repo');
is($t->post('/api/buckets/me/m', \'{}',
	{ 'Content-Type' => 'application/json' })->{status}, 200, 'a bucket');

# Two commits.  Names have all characters that JSON must or may escape, and that
# trees show; titles have the other characters.

$t->sql(<<'EOF_SQL', timeout => 120);
CREATE TABLE public.names AS
SELECT n, 'n' || n || chr(n) AS name FROM generate_series(33, 340) AS n
 WHERE n NOT BETWEEN 127 AND 159 AND chr(n) NOT IN ('/', '\', '.', ':')
UNION ALL
SELECT 1000 + n::integer, w FROM unnest(ARRAY['"', '""', 'a b',
    '''', '</script>', U&'\2028\2029', U&'\+01F600', U&'\+10FFFE',
    U&'\+10FFFF', U&'\+10FFFF\+10FFFF', U&'\FFFD',
    U&'e\0301', repeat('"', 255), repeat(chr(8364), 85)])
       WITH ORDINALITY AS w(w, n);
CREATE TABLE public.tops AS
SELECT '' AS folder UNION ALL SELECT 'd"ir' UNION ALL SELECT U&'d\2028/e';
INSERT INTO xet.hub_commits (repo_id, line, seq, oid, parent, who, title)
SELECT 1, 0, n, substr(sha256(int4send(n)), 1, 20), NULL, 'me',
       (ARRAY[E'\b\f\n\r\t\x01\x1f\x7f"\\/', U&'\2028 \+01F600'])[n - 1]
  FROM generate_series(2, 3) AS n;
INSERT INTO xet.hub_paths (repo_id, line, path, since, till, folder, hash,
                           size, sha256, made, made_at, mtime)
SELECT r, 0, concat_ws('/', nullif(f.folder, ''), w.name),
       CASE r WHEN 1 THEN v ELSE 0 END,
       CASE WHEN r = 1 AND v = 2 AND w.n % 3 = 0 THEN 3 ELSE 2147483647 END,
       f.folder, sha256(int4send(w.n)),
       CASE w.n % 7 WHEN 0 THEN 0 WHEN 1 THEN 9223372036854775807
                    ELSE w.n + v END,
       CASE WHEN r = 1 THEN sha256(int8send(w.n)) END,
       CASE WHEN r = 1 THEN substr(sha256(int4send(v)), 1, 20)
            ELSE ''::bytea END,
       timestamptz '2026-11-23 22:35:01.2509999+00' + w.n * interval '1 s',
       CASE WHEN r = 2 AND w.n % 2 = 0
            THEN to_timestamp(w.n * 248000000.999) END
  FROM public.names w, public.tops f, generate_series(1, 2) r,
       generate_series(2, 3) v
 WHERE v = 2 OR r = 1 AND w.n % 3 = 0 AND w.n % 2 = 0;
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made, made_at)
SELECT r, 0, f.path, CASE r WHEN 1 THEN 2 ELSE 0 END, f.folder,
       CASE WHEN r = 1 THEN substr(sha256(int4send(2)), 1, 20)
            ELSE ''::bytea END,
       timestamptz '2024-02-29 00:00:00+00'
  FROM (VALUES ('d"ir', ''), (U&'d\2028', ''), (U&'d\2028/e', U&'d\2028'))
          AS f(path, folder), generate_series(1, 2) r;
UPDATE xet.hub_lines SET last = 3 WHERE repo_id = 1;
UPDATE xet.hub_refs SET oid = substr(sha256(int4send(3)), 1, 20)
 WHERE repo_id = 1;

CREATE FUNCTION public.entry(p xet.hub_paths, expand boolean) RETURNS text
    LANGUAGE sql STABLE AS $$
SELECT CASE WHEN (p).repo_id = 2 AND (p).hash IS NULL
    THEN '{"type":"directory","uploadedAt":"' || xet.hub_date((p).made_at)
         || '","path":' || to_json((p).path) || '}'
    WHEN (p).repo_id = 2
    THEN '{"type":"file","size":' || (p).size || ',"xetHash":"'
         || encode((p).hash, 'hex') || '","uploadedAt":"'
         || xet.hub_date((p).made_at) || '","mtime":'
         || coalesce('"' || xet.hub_date((p).mtime) || '"', 'null')
         || ',"path":' || to_json((p).path) || '}'
    ELSE CASE WHEN (p).hash IS NULL
         THEN '{"type":"directory","oid":"' || encode((p).made, 'hex')
              || '","size":0,"path":' || to_json((p).path)
         WHEN (p).size = 0
         THEN '{"type":"file","oid":'
              || '"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"'
              || ',"size":0,"path":' || to_json((p).path)
         ELSE '{"type":"file","oid":"'
              || encode(substr((p).sha256, 1, 20), 'hex') || '","size":'
              || (p).size || ',"lfs":{"oid":"' || encode((p).sha256, 'hex')
              || '","size":' || (p).size
              || ',"pointerSize":134},"xetHash":"'
              || encode((p).hash, 'hex') || '","path":' || to_json((p).path)
         END
         || CASE WHEN expand THEN (
                SELECT ',"lastCommit":{"id":"' || encode(c.oid, 'hex')
                       || '","title":' || to_json(c.title) || ',"date":"'
                       || xet.hub_date((p).made_at) || '"}'
                  FROM xet.hub_commits c
                 WHERE c.repo_id = 1 AND c.oid = (p).made) ELSE '' END
         || '}'
    END
$$;
EOF_SQL

my %of = (models => 1, buckets => 2);
my @oids = map { $t->sql("SELECT encode(substr(sha256(int4send($_)), 1, 20),"
	. " 'hex')") } 2, 3;

# --------------------------------------------------------------------------
# trees

my $names = $t->sql('SELECT count(*) FROM public.names');

cmp_ok($names, '>', 250, "$names names");

for my $rev ('main', @oids) {
	my $seq = $rev eq $oids[0] ? 2 : 3;

	for my $folder ('', 'd%22ir', 'd%E2%80%A8') {
		for my $args ('', 'recursive=true', 'expand=true',
			'recursive=true&expand=1')
		{
			my $uri = "/api/models/me/m/tree/$rev/$folder?$args";

			same($uri, 1, $seq, unescape($folder), $args);
		}
	}
}

for my $folder ('', 'd%22ir', 'd%E2%80%A8') {
	for my $args ('', 'recursive=true', 'recursive=false') {
		same("/api/buckets/me/m/tree/$folder?$args", 2, 0,
			unescape($folder), $args);
	}
}

# a path that is a file in a bucket, with pages of one entry and of several

for my $args ('', 'recursive=true', 'limit=1') {
	my $r = $t->get("/api/buckets/me/m/tree/d%22ir/a%20b?$args");

	is($r->{body}, entries("p.repo_id = 2 AND p.path = 'd\"ir/a b'", 0),
		"a file of a bucket: $args");
	is(defined $r->header_value('Link'), $args =~ /limit/,
		"a file of a bucket: $args: another page");
}

is($t->get('/api/buckets/me/m/tree/none')->{body}, '[]',
	'nothing of a bucket');
is($t->get('/api/models/me/m/tree/main/a%20b')->{status}, 404,
	'a file of a repo is no folder');

# --------------------------------------------------------------------------
# paths

my @some = ('a%20b', 'd%22ir', 'nope', 'd%22ir/%22', '%5Cu0041',
	'd%E2%80%A8/e/%F0%9F%98%80', 'a%20b');
my $in = join(', ', map { "('" . (unescape($_) =~ s/'/''/gr) . "')" } @some);

for my $case ([ 'models', 'main', 3, 0 ], [ 'models', 'main', 3, 1 ],
	[ 'models', $oids[0], 2, 1 ], [ 'buckets', undef, 0, 0 ])
{
	my ($kind, $rev, $seq, $expand) = @$case;

	my $r = $t->post("/api/$kind/me/m/paths-info" . ($rev ? "/$rev" : ''),
		\(join('&', map { "paths=$_" } @some)
			. ($expand ? '&expand=true' : '')),
		{ 'Content-Type' => 'application/x-www-form-urlencoded' });

	is($r->{body}, $t->sql("SELECT '[' || string_agg(public.entry(p, '"
		. ($expand ? 't' : 'f') . "'), ',' ORDER BY w.n) || ']'"
		. " FROM (SELECT row_number() OVER () AS n, v.* FROM"
		. " (VALUES $in) AS v(path)) w JOIN xet.hub_paths p"
		. " ON p.path = w.path COLLATE \"C\" AND p.repo_id ="
		. " $of{$kind} AND p.since <= $seq AND p.till > $seq"
		. " WHERE p.repo_id = 1 OR p.hash IS NOT NULL"),
		"paths of $kind at " . ($rev // 'all times')
		. ($expand ? ', expanded' : ''));
}

is($t->post('/api/models/me/m/paths-info/no', \'paths=x',
	{ 'Content-Type' => 'application/x-www-form-urlencoded' })
	->header_value('X-Error-Code'), 'RevisionNotFound',
	'paths of no revision');

# --------------------------------------------------------------------------
# 20,000 commits change README.md in three folders: in the root, in a folder
# with a hundred files, and in a folder where the last commit deletes README.md

$t->sql(<<'EOF_SQL', timeout => 120);
SELECT xet.hub_create(ROW(0, 'me', 'old', true, '{}', true, ''), false, 'me',
                      sha256('old'));
INSERT INTO xet.hub_commits (repo_id, line, seq, oid, who, title)
SELECT 3, 0, n, substr(sha256(int8send(n)), 1, 20), 'me', 'c' || n
  FROM generate_series(2, 20001) n;
INSERT INTO xet.hub_paths (repo_id, line, path, since, till, folder, hash,
                           size, sha256, made)
SELECT 3, 0, f || 'README.md', n,
       CASE WHEN n = 20001 AND f <> 'gone/' THEN 2147483647 ELSE n + 1 END,
       rtrim(f, '/'), sha256('x'), 5, sha256('y'),
       substr(sha256(int8send(n)), 1, 20)
  FROM generate_series(2, 20000) n, unnest('{"",d/,gone/}'::text[]) f
 UNION ALL
SELECT 3, 0, f || 'README.md', 20001, 2147483647, rtrim(f, '/'), sha256('x'),
       5, sha256('y'), substr(sha256(int8send(20001)), 1, 20)
  FROM unnest('{"",d/}'::text[]) f;
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                           sha256, made)
SELECT 3, 0, 'd/f' || n, 2, 'd', sha256('x'), 5, sha256('y'),
       substr(sha256(int8send(2)), 1, 20)
  FROM generate_series(1, 100) n;
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made)
VALUES (3, 0, 'd', 2, '', substr(sha256(int8send(2)), 1, 20)),
       (3, 0, 'gone', 2, '', substr(sha256(int8send(2)), 1, 20));
UPDATE xet.hub_lines SET last = 20001, files = 102 WHERE repo_id = 3;
UPDATE xet.hub_refs SET oid = substr(sha256(int8send(20001)), 1, 20)
 WHERE repo_id = 3;
INSERT INTO xet.hub_refs
SELECT 3, 'heads/b' || n, substr(sha256(int8send(2)), 1, 20)
  FROM generate_series(1, 20000) n;
EOF_SQL

my $old = "ROW(0, 'me', 'old', true, '{}', true, '')";
my %read = (
	"hub_tree_rows($old, 'main', '', false, false, NULL, 1000, 1000)" => 3,
	"hub_tree_rows($old, 'main', '', true, true, NULL, 1000, 1000)" => 104,
	"hub_tree_rows($old, 'main', 'd', false, true, NULL, 200, 200)" => 101,
	"hub_info($old, 'main', true, NULL)" => 1,
	"hub_paths_rows($old, 'main', '{README.md,gone/README.md}', true)" => 1,
	"hub_changes($old, 'main', NULL, NULL, 256)" => 1
);

for my $when ('before ANALYZE', 'behind ANALYZE') {
	for my $call (sort keys %read) {
		my $buffers = $t->pg()->buffers($call);

		cmp_ok($buffers, '<', 500, "$when: $call: $buffers buffers");
	}

	is($t->sql("SELECT count(*) FROM xet.$_ WHERE " . (/^hub_(?:tree|paths)/
		? 'entry IS NOT NULL' : 'true')), $read{$_}, "$when: $_: rows")
		for sort keys %read;

	$t->sql('ANALYZE');
}

# --------------------------------------------------------------------------
# 50,000 repos

$t->sql(<<'EOF_SQL', timeout => 300);
INSERT INTO xet.hub_repos (kind, owner, name, changed_at)
SELECT n % 2, 'o' || n % 5, 'r' || n,
       timestamptz '2026-01-01 00:00:00+00' + n % 777 * interval '1 us'
  FROM generate_series(1, 50000) n;
INSERT INTO xet.hub_lines (repo_id, line, last)
SELECT r.id, 0, 1 FROM xet.hub_repos r WHERE r.owner LIKE 'o%';
INSERT INTO xet.hub_commits (repo_id, line, seq, oid, who, title)
SELECT r.id, 0, 1, substr(sha256(int8send(r.id)), 1, 20), 'me', 't'
  FROM xet.hub_repos r WHERE r.owner LIKE 'o%';
INSERT INTO xet.hub_refs
SELECT r.id, 'heads/main', substr(sha256(int8send(r.id)), 1, 20)
  FROM xet.hub_repos r WHERE r.owner LIKE 'o%';
INSERT INTO xet.hub_repos (kind, owner, name, changed_at)
SELECT 0, 'few', 'f' || n, '2020-01-01' FROM generate_series(1, 3) n;
INSERT INTO xet.hub_lines (repo_id, line, last)
SELECT r.id, 0, 1 FROM xet.hub_repos r WHERE r.owner = 'few';
INSERT INTO xet.hub_refs
SELECT r.id, 'heads/main', ''::bytea FROM xet.hub_repos r
 WHERE r.owner = 'few';
EOF_SQL

for my $when ('before ANALYZE', 'behind ANALYZE') {
	my $nobody = "false, '{}', true, ''";
	my $all = "true, '{}', true, ''";

	for my $call ("hub_list(ROW(0, NULL, NULL, $nobody), 100, NULL)",
		"hub_list(ROW(0, 'o4', NULL, $all), 100, NULL)",
		"hub_list(ROW(0, 'few', NULL, $all), 100, NULL)",
		"hub_list(ROW(0, 'none', NULL, $all), 100, NULL)",
		"hub_list(ROW(1, NULL, NULL, $all), 100,"
			. " '1767225600.000300/30000')")
	{
		my $buffers = $t->pg()->buffers($call);

		cmp_ok($buffers, '<', 1500, "$when: $call: $buffers buffers");
	}

	$t->sql('ANALYZE');
}

# reads all repos, a page at a time, in order

my ($uri, %seen, @order) = ('/api/datasets?limit=100&author=o3');

while ($uri) {
	my $r = $t->get($uri);

	push @order, map { $_->{id} } @{ $r->json() };
	($uri) = ($r->header_value('Link') // '') =~ m!<http://[^/]+([^>]+)>!;
	last if @order > 6000;
}

is(scalar(grep { !$seen{$_}++ } @order), 5000, 'a list of 5,000: each once');
is(join(' ', @order), join(' ', $t->sql("SELECT owner || '/' || name"
	. ' FROM xet.hub_repos WHERE kind = 1 AND owner = \'o3\''
	. ' ORDER BY changed_at DESC, id DESC')), 'a list of 5,000: in order');

$t->done();

# --------------------------------------------------------------------------

# Compares a tree, in one page and in many small pages, with PostgreSQL's
# output.

sub same {
	my ($uri, $repo, $seq, $folder, $args) = @_;

	my $in = $folder =~ s/'/''/gr;
	my $deep = $args =~ /recursive=true/
		|| ($repo == 2 && $args !~ /recursive/);
	my $where = "p.repo_id = $repo AND p.since <= $seq AND p.till > $seq"
		. ($deep ? ($folder eq '' ? '' : " AND p.path LIKE"
			. " '$in/%'") : " AND p.folder = '$in'")
		. ($deep && $repo == 2 ? ' AND p.hash IS NOT NULL' : '');
	my $expand = $args =~ /expand/ ? 1 : 0;
	my $r = $t->get($uri);

	alike($r->{body}, entries($where, $expand), $uri);

	my ($all, $next, $n) = ('', "$uri&limit=41", 0);

	while ($next && $n++ < 40) {
		my $page = $t->get($next);
		my $text = $page->{body} =~ s/^\[(.*)\]$/$1/sr;

		$all .= ($all eq '' || $text eq '' ? '' : ',') . $text;
		($next) = ($page->header_value('Link') // '')
			=~ m!<http://[^/]+([^>]+)>!;
	}

	alike("[$all]", $r->{body}, "$uri: in pages");
}

# Compares texts without printing all 200 KiB if they differ.

sub alike {
	my ($got, $expected, $name) = @_;

	my $at = 0;

	return pass("$name: " . length($got) . ' bytes')
		if $got eq $expected && length($got) > 2;

	$at++ while substr($got, $at, 1) eq substr($expected, $at, 1)
		&& $at < length($got);

	fail($name);
	diag("at $at: got '" . substr($got, $at, 80) . "', expected '"
		. substr($expected, $at, 80) . "'");
}

# Returns the expected entries as bytes.  They come from psql in hex, because
# psql omits characters that it cannot show.

sub entries {
	my ($where, $expand) = @_;

	return pack('H*', scalar $t->sql("SELECT encode(convert_to('[' ||"
		. " coalesce(string_agg(public.entry(p, '$expand'), ','"
		. " ORDER BY p.path), '') || ']', 'UTF8'), 'hex')"
		. " FROM xet.hub_paths p WHERE $where"));
}

sub unescape { return $_[0] =~ s/%([0-9A-F]{2})/chr(hex($1))/ger }

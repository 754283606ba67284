#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Permissions are typed parameters of SQL functions, and NULL in such a
# parameter grants no permission.  The test calls each function of PostgreSQL's
# catalog that has these parameters.  With valid permissions the function
# accepts the call; with NULL in any one of them it refuses.  A new function is
# covered automatically.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(xet => 0, pg => 1);

$t->pg_start();
$t->pg()->migrate();

# Private repos of alice: a model and a bucket, with a verified file and an
# unverified one.  The store also has a repo of its own, with a xorb and a
# file.

$t->sql(<<'EOF_SQL');
INSERT INTO xet.store VALUES (true, 'store', true, xet.store_tables());
SELECT xet.hub_create(ROW(k, 'alice', 'm', false, '{alice}', true, ''), true,
                      'alice', sha256(('repo' || k)::bytea))
  FROM unnest('{0,3}'::integer[]) AS k;
SELECT xet.xorb_put(sha256('x'), sha256('c') || sha256('d'),
                    '\xe8030000d0070000', '\xf4010000e8030000', 2000, 1000,
                    '{0,1}', 9, decode(repeat('00', 16), 'hex'), false, 'r',
                    NULL),
       xet.xorb_put(sha256('z'), sha256('a') || sha256('b'),
                    '\xe8030000d0070000', '\xf4010000e8030000', 2000, 1000,
                    '{0,1}', 9, decode(repeat('00', 16), 'hex'), false, 'r',
                    NULL);
INSERT INTO xet.files (hash, size, term_count, sha256, sha256_proven, packed)
SELECT sha256(f::bytea), 400, 1, sha256((f || 's')::bytea), f <> 'g',
       decode(repeat('00', 52), 'hex')
  FROM unnest('{f,g}'::text[]) AS f;
INSERT INTO xet.repo_files (repo_id, file_id, sha256)
SELECT r.id, f.id, f.sha256 FROM xet.repos r, xet.files f;
INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)
SELECT f.id, x.id, '{[0,2)}' FROM xet.files f, xet.xorbs x;
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                           sha256, made)
SELECT r.id, 0, p, 1, '', xet.hub_hash(sha256('f')), 400, sha256('fs'),
       (SELECT c.oid FROM xet.hub_commits c WHERE c.repo_id = r.id)
  FROM xet.hub_repos r, unnest('{x,x.gguf,.gitignore}'::text[]) AS p;
SELECT xet.hub_stage('c', 0, '{2}', ARRAY['c'::bytea], '{400}', '{NULL}',
                     ARRAY[sha256('fs')], '{NULL}', '{NULL}', '{NULL}');
SELECT xet.hub_stage('g', 0, '{2}', ARRAY['c'::bytea], '{400}', '{NULL}',
                     ARRAY[sha256('gs')], '{NULL}', '{NULL}', '{NULL}');
SELECT xet.hub_stage('r', 0, '{2}', ARRAY['README.md'::bytea], '{400}',
                     '{NULL}', ARRAY[sha256('fs')], '{NULL}', '{NULL}',
                     '{NULL}');
SELECT xet.hub_stage('b', 0, '{3}', ARRAY['c'::bytea], '{NULL}',
                     ARRAY[sha256('f')], '{NULL}', '{NULL}', '{NULL}',
                     ARRAY['model/alice/m'::bytea]);

-- the first column of the first row, and nothing that the call has changed

CREATE FUNCTION public.tried(query text) RETURNS text
    LANGUAGE plpgsql
AS $$
DECLARE
    found text;
BEGIN
    EXECUTE query INTO found;
    RAISE EXCEPTION '%', coalesce(left(found, 500), 'NULL')
          USING ERRCODE = 'XT999';
EXCEPTION
    WHEN SQLSTATE 'XT999' THEN RETURN SQLERRM;
    WHEN OTHERS THEN RETURN 'error ' || translate(SQLERRM, E'\n', ' ');
END;
$$;
EOF_SQL

# --------------------------------------------------------------------------

my @rights = qw/ any_space spaces any_store store admin any_repo repo wide
	proof /;
my @asked = qw/ kind owner name any_space spaces any_store store /;
my %right = map { $_ => 1 } @rights;

# Three callers: one with a name space, one with all name spaces, and one whose
# token is for the repo.

my %space = (any_space => 'false', spaces => "'{bob,alice}'",
	any_store => 'true', store => "''");
my @hub = (\%space,
	{ %space, any_space => 'true', spaces => "'{}'" },
	{ %space, any_store => 'false', store => "'_hub/1'" });
my @api = ({ any_repo => 'false', repo => "'r'" },
	{ any_repo => 'true', repo => "''" });

# values of the other parameters by name; some functions need different values

my $file = "sha256('f')";
my $zeros = "decode(repeat('00', 16), 'hex')";
my %value = (kind => 0, owner => "'alice'", name => "'m'", rev => "'main'",
	path => "'x'", blobs => 'true', private => 'false', who => "'alice'",
	upload => "'c'", batches => 1, to_owner => "'alice'", to_name => "'o'",
	tag => "'latest'", layers => 'false',
	most => 10, after => 'NULL', base => "''", until => 'NULL',
	part => 10,
	kinds => "'{0}'", at => 'NULL', last => 'NULL',
	rest => 'NULL', deep => 'false', expand => 'true',
	paths => "ARRAY['x'::bytea]", sizes => "'{400}'",
	ref => "'heads/b'", does => 0, ignored => "'{0}'",
	all_sizes => "'{400}'", samples => "'{7}'",
	mine => 'NULL', parent => 'NULL',
	message => "'note'",
	title => "'title'", text => "''", subject => 'NULL', hash => $file,
	writes => 'true', of_store => "'_hub/1'", done => 'true', to_kind => 3,
	hashes => "ARRAY[$file]", digests => "ARRAY[sha256('fs')]",
	source => "'model/alice/m'", proof => 'true',
	wide => 'false', file => $file, files => "ARRAY[$file]",
	first_byte => 0, last_byte => 9, byte_at => 0, first_file => 1,
	id => "(SELECT id FROM xet.xorbs WHERE hash = sha256('x'))",
	chunk_count => 2, at_least => 0, idx => 0, first_count => 2,
	first_id => "(SELECT id FROM xet.xorbs WHERE hash = sha256('z'))",
	xorb => "sha256('x')", xorbs => "ARRAY[sha256('x')]", starts => "'{0}'",
	ends => "'{2}'", chunk => "sha256('c')", digest => "sha256('fs')",
	stored => 1, logical => 1, what => "'stored'", size => 10, seq => 0,
	copy_id => 9, admin => 'true', act => 'NULL', seen => 'NULL',
	metadata => 0, counted => 'true', claimed => 'true', marks => 'NULL',
	scope => 3, after_file => 0, after_xorb => 0,
	words => 'NULL', sort => "'changed_at'", whole => 'true',
	siblings => 'true', uploads => "'_hub/1'", card => 'NULL');
my %special = (
	hub_again => { any_store => 'false', store => "'_hub/99'" },
	hub_bucket_file => { repo => 2, path => "'y'",
		target => "(SELECT id FROM xet.repos WHERE name = '_hub/2')" },
	hub_named => {
		target => "(SELECT id FROM xet.repos WHERE name = '_hub/2')" },
	hub_blob => { digest => "'sha256:' || encode(sha256('fs'), 'hex')" },
	hub_batch => { kind => 3, upload => "'b'" },
	hub_begin => { name => "'new'" },
	hub_list => { name => 'NULL' },
	hub_newest => { name => 'NULL' },
	hub_own => { name => 'NULL' },
	hub_matches => { name => 'NULL',
		repo => '(SELECT h FROM xet.hub_repos h WHERE h.id = 1)' },
	hub_card_wanted => { upload => "'r'", uploads => "'_hub/1'" },
	hub_create => { name => "'new'", batches => 0 },
	hub_duplicate => { to_owner => "'alice'", to_name => "'m'" },
	hub_claims => { upload => "'g'" },
	hub_move => { to_owner => "'bob'" },
	hub_tree_rows => { path => "''" },
	usage_get => { subject => "'me'" },
	xorb_put => { xorb => "sha256('y')", chunk_hashes => $file,
		raw_ends => "'\\xe8030000'", stored_ends => "'\\xe8030000'",
		raw_size => 1000, stored_size => 1000, eligible => "'{0}'",
		digest => $zeros, flush => 'true' },
	file_put => { file => "sha256('fy')", size => 1000, sha256 => $file,
		kept => 'false',
		packed => "convert_to(repeat('x', 52), 'UTF8')",
		xorb => "sha256('y')", chunk_hashes => $file,
		raw_ends => "'\\xe8030000'", stored_ends => "'\\xe8030000'",
		raw_size => 1000, stored_size => 1000, eligible => "'{0}'",
		digest => $zeros },
	xorb_insert => { xorb => "sha256('y')", chunk_hashes => $file,
		raw_ends => "'\\xe8030000'", stored_ends => "'\\xe8030000'",
		raw_size => 1000, stored_size => 1000, eligible => "'{0}'",
		digest => $zeros },
	shard_put => { upload => $zeros, map({ $_ => "'{}'" } qw/ serials hashes
		sizes sha256 counts packed chunks xorbs indexes seg_serials
		seg_firsts seg_ends seg_packed /), hidden => 1,
		proven => 'false', kept => 'false', checked => 'true' },
	quota_shard => { last => 'NULL::xet.staged', repo_row => 1 }
);

# a token for a repo gives no permissions before that repo exists

my %whole = map { $_ => 1 } qw/ hub_begin hub_create hub_move hub_duplicate
	hub_batch hub_bucket_file hub_named /;

# --------------------------------------------------------------------------

my @functions = map { [ split(/\|/, $_, -1) ] } $t->sql(<<'EOF_SQL');
SELECT p.proname, string_agg(a.name, ' ' ORDER BY a.n)
           FILTER (WHERE a.mode IN ('i', 'b', 'v')),
       coalesce(string_agg(a.name, ' ' ORDER BY a.n)
           FILTER (WHERE a.mode IN ('o', 'b', 't')),
           (SELECT string_agg(c.attname, ' ')
              FROM pg_type y JOIN pg_attribute c ON c.attrelid = y.typrelid
             WHERE y.oid = p.prorettype), '')
  FROM pg_proc p
 CROSS JOIN LATERAL unnest(p.proargnames,
                coalesce(p.proargmodes::"char"[]::text[],
                         array_fill('i'::text, ARRAY[p.pronargs::integer])))
               WITH ORDINALITY AS a(name, mode, n)
 WHERE p.pronamespace = 'xet'::regnamespace
   AND p.proargnames && '{asked,store,any_repo,wide,proof}'
 GROUP BY p.oid, p.proname ORDER BY p.proname;
EOF_SQL

cmp_ok(scalar @functions, '>', 40, 'functions that take rights');

my @calls;

for my $f (@functions) {
	my ($name, $in, $out) = @$f;
	my @in = map { $_ eq 'asked' ? @asked : $_ } split(/ /, $in);
	my %in = map { $_ => 1 } @in;
	my %out = map { $_ => 1 } split(/ /, $out);
	my @sets = $in{any_space} ? @hub : $in{any_repo} ? @api
		: ({ store => "'_hub/1'" });

	pop @sets if $in{any_space} && $whole{$name};

	for my $n (0 .. $#sets) {
		my %args = (%value, %{ $sets[$n] }, %{ $special{$name} // {} });
		my @none = grep { !defined $args{$_} } @in;

		is("@none", '', "$name: a value for each parameter") or next;

		push @calls, [ "$name: rights $n: accepted", 1, \%out,
			call($name, \%out, \%args, $in) ];

		for my $right (grep { $right{$_} && ($_ ne 'repo'
			|| $in{any_repo}) } @in)
		{
			my %less = (%args, $right => 'NULL');

			push @calls, [ "$name: rights $n: no $right", 0,
				\%out, call($name, \%out, \%less, $in) ];
		}
	}
}

my @answers = $t->sql(join(";\n", map {
	"SELECT public.tried(\$sql\$$_->[3]\$sql\$)" } @calls), timeout => 120);

is(scalar @answers, scalar @calls, 'all are answered');

for (0 .. $#calls) {
	my ($name, $good, $out) = @{ $calls[$_] };

	is(accepted($answers[$_], $out) ? 1 : 0, $good, $name)
		or diag($answers[$_]);
}

$t->done();

# --------------------------------------------------------------------------

sub call {
	my ($name, $out, $args, $in) = @_;

	my %given = (%$args, asked => 'ROW('
		. join(', ', map { $_ // 'NULL' } @$args{@asked}) . ')');

	my $column = $out->{body} && $name =~ /list|own/ ? 't.body'
		: $out->{status} ? 't.status'
		: $out->{bad} ? 't.bad IS NULL'
		: $name eq 'hub_again' ? 't IS NOT NULL'
		: $out->{kind} || keys %$out ? "'row'" : 't';

	return "SELECT $column FROM xet.$name("
		. join(', ', map { "$_ => $given{$_}" } split(/ /, $in))
		. ') t' . ($out->{status} ? ' LIMIT 1' : '');
}

# Returns whether the function accepted the call: its result is status 200, a
# list that contains the private repo, a row, or a value that is not false, NULL
# or empty.

sub accepted {
	my ($answer, $out) = @_;

	return $answer =~ m!alice/m! if $out->{body} && $answer =~ /^\[/;
	return $answer eq '200' if $out->{status};

	return $answer !~ /^(error .*|NULL|false|\{\}|)$/s
		|| ($answer eq '' && !%$out);
}

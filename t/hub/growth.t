#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Uploads of small files by PUT and by LFS, and commits, in a new database that
# is never analyzed: the 3,000th takes no more pages of PostgreSQL than the
# 200th, and no statement is planned again.  Counts pages, not time.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth off;'), workers => 1,
	pg_conf => <<'EOC');
autovacuum = off
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track = all
pg_stat_statements.track_planning = on
EOC

$t->token_key();
$t->run();
$t->sql('CREATE EXTENSION pg_stat_statements SCHEMA public');

my ($early, $late, $some) = (200, 3000, 50);
my $json = JSON::PP->new()->canonical();
my $n = 0;
my $cas;

is($t->post('/api/repos/create', \'{"name":"m"}')->{status}, 200, 'a repo');

my %early = measure($early);
my %late = measure($late);
my $planned = join(', ', $t->sql("SELECT left(query, 100) || ': ' || plans"
	. " FROM public.pg_stat_statements WHERE userid = 'xet'::regrole"
	. ' AND plans > 2'));

# trees of indexes get one level deeper; chunk_find makes many look-ups, mostly
# of what does not exist

for my $name (sort keys %late) {
	my ($was, $is) = ($early{$name}{hits} // 0, $late{$name}{hits});

	cmp_ok($is, '<=', 1.6 * $was + 8, "$name: $is pages, $was at first");
}

my @put = qw/ file_put hub_keep hub_enter /;

cmp_ok(total(\%early, @put), '<=', 280, "a small file: pages at $early: "
	. total(\%early, @put));
cmp_ok(total(\%late, @put), '<=', 330, "a small file: pages at $late: "
	. total(\%late, @put));
cmp_ok($late{hub_commit}{hits}, '<=', 220, 'a commit of one file: pages');
is($planned, '', 'nothing is planned');

$t->done();

# --------------------------------------------------------------------------

# Sends files up to number $to, and returns the pages that each statement of the
# last $some files took, name => { hits, calls }.

sub measure {
	my ($to) = @_;

	send_file(++$n) while $n < $to - $some;

	$t->sql('SELECT public.pg_stat_statements_reset()');
	send_file(++$n) while $n < $to;

	my %got;

	for ($t->sql("SELECT substring(query, 'xet\\.(\\w+)\\('), calls,"
		. ' shared_blks_hit + shared_blks_read'
		. ' FROM public.pg_stat_statements'
		. " WHERE userid = 'xet'::regrole AND toplevel"
		. " AND query ~ 'xet\\.'"))
	{
		my ($name, $calls, $hits) = split(/\|/);

		$name = 'xorb_put' if $name eq 'copy_made';
		$got{$name} = { hits => sprintf('%.0f', $hits / $calls),
			calls => $calls } if $calls >= $some / 10;
	}

	return %got;
}

# Sends a file by PUT, or every fifth by LFS, with a commit.

sub send_file {
	my ($i) = @_;

	my $data = random_bytes($i, 2000 + $i % 100);
	my $oid = sha256_hex($data);

	if ($i % 5) {
		$cas ||= $t->get('/api/models/me/m/xet-write-token/main')
			->json()->{accessToken};

		return sent($t->http('PUT', '/cas/v1/files',
			{ Authorization => "Bearer $cas" }, \$data));
	}

	my $batch = $json->encode({ operation => 'upload',
		transfers => [ 'basic' ], objects => [ { oid => $oid,
			size => length($data) } ] });
	my $o = sent($t->post('/me/m.git/info/lfs/objects/batch', \$batch,
		{ 'Content-Type' => 'application/vnd.git-lfs+json' }))
		->json()->{objects}[0];

	sent($t->http('PUT', $o->{actions}{upload}{href}
		=~ s!^http://[^/]+!!r, {}, \$data));

	my $commit = join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } },
		{ key => 'lfsFile', value => { path => "d/f$i",
			algo => 'sha256', oid => $oid,
			size => length($data) } });

	sent($t->post('/api/models/me/m/commit/main', \$commit,
		{ 'Content-Type' => 'application/x-ndjson' }));
}

sub sent {
	my ($r) = @_;

	die $r->summary() if $r->{status} !~ /^20[01]\z/;

	return $r;
}

# Returns the pages of these statements together, for one file.

sub total {
	my ($got, @names) = @_;

	my $pages = 0;

	$pages += $got->{$_}{hits} * $got->{$_}{calls} / $some for @names;

	return sprintf('%.0f', $pages);
}

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A store of before quotas gets its sums with the migration: repos as they would
# have been counted, and subjects where only one can have been the first.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ root /;

my $t = Test::Xet->new(workers => 1, Test::Xet::Token::repos());

$t->token_key();
$t->run();

my $shared = random_bytes(1, 300000);
my $own = random_bytes(2, 200000);

for ([ 'a/a@ann', $shared ], [ 'b/b@bob', $shared ], [ 'b/b@bob', $own ]) {
	is($t->http('PUT', '/api/v1/files', $t->auth('write', $_->[0]),
		\$_->[1])->{status}, 200, "a file of $_->[0]");
}

my $before = repos();

$t->stop();

# what 0014 has made, gone

$t->sql($_) for 'DROP TABLE xet.charges, xet.usage, xet.usage_left,'
	. ' xet.quotas CASCADE',
	'ALTER TABLE xet.repo_files DROP COLUMN subject CASCADE',
	'DROP FUNCTION ' . join(', ', map { "xet.$_" } qw/ usage_add
		charges_count charges_moved xorbs_healed repo_files_count
		repo_files_moved files_places gc_xorbs_reviewed /) . ' CASCADE',
	'DROP TABLE xet.hub_proofs, xet.hub_vain',
	'ALTER TABLE xet.hub_commits DROP COLUMN subject, DROP COLUMN metadata',
	'ALTER TABLE xet.hub_refs DROP COLUMN subject',
	'ALTER TABLE xet.hub_paths DROP COLUMN subject',
	"DELETE FROM xet.migrations WHERE version = 14"
		. " OR name LIKE '%hub_bounds%'",
	"UPDATE xet.migrations SET sha256 = '' WHERE version = 0";

my $r = xet(undef, { env => { XET_POSTGRES => $t->conninfo() } }, 'migrate',
	'--sql', root() . '/sql');

is($r->{code}, 0, 'migrated') or diag($r->{err});
like($r->{out}, qr/^0014_quotas\.sql$/m, 'by the file');
is(repos(), $before, 'repos as they were counted');
is($t->sql("SELECT stored, logical FROM xet.usage_list()"
	. " WHERE kind = 'subject'"),
	$t->sql('SELECT min(stored_size) FROM xet.xorbs') . '|0',
	'the subject that was alone');
is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0, 'sums are right');

$t->done();

sub repos {
	return $t->sql("SELECT name, stored, logical, files"
		. " FROM xet.usage_list() WHERE kind = 'repo' ORDER BY name");
}

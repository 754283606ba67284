#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# hf_xet keeps a cache of the xorbs that it need not send, by the text of the
# endpoint.  One machine, and so one cache, is used with a store that is new,
# restored, collected and damaged, and by several callers.  Every upload
# succeeds, and the files can be downloaded.  Real clients: hf and
# @huggingface/hub.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collect;
use Test::Xet::Process qw/ build_dir /;
use Test::Xet::Real;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA ();
use File::Path qw/ remove_tree /;

my %o = Test::Xet::Table::hub('xet_auth token; xet_hub_public on; '
	. 'xet_hub_owners $team;', Test::Xet::Token::token_location());

my $t = Test::Xet->new(%o, http => "$o{http} map \$xet_subject \$team {"
	. ' alice team; bob team; default ""; }');

$t->token_key();
$t->run();

# damage is logged when the server finds it

$t->allow(qr/unknown_xorb|is not the store|xorb .* (?:missing|truncated)/);

my $table = Test::Xet::Table->new($t);
my $dir = $table->dir();
my %token;

# files of one chunk, of several, and of several xorbs

my %size = (tiny => 5000, small => 300_000, large => 3_000_000);
my $seed = 0;

for my $name (sort keys %size) {
	make_mix("$dir/$name", ++$seed, $size{$name});
}

sub token {
	my ($who, $repo) = @_;

	return $token{$who} //= $t->auth('admin', "\@$who")->{Authorization}
		=~ s/Bearer //r unless $repo;

	my $r = xet($t, { env => { XET_POSTGRES => $t->conninfo() } }, 'token',
		'--key', $t->dir() . '/token.key', '--subject', $who, '--scope',
		'write', '--repo', "hf://$repo");

	die "token: $r->{err}\n" if $r->{code} != 0;

	return $r->{out} =~ s/\n//r;
}

# Uploads the files, each by its own process, to names that no commit has used.
# Returns the number of bytes of xorbs that were sent.

my $turn = 0;

sub uploads {
	my ($name, $token, $repo, @more) = @_;

	my $before = uploaded($t);
	my %o = (machine => 'one', token => $token);

	$turn++;

	for my $file (sort keys %size) {
		$table->hf("$name: $file", \%o, 'upload', $repo, "$dir/$file",
			"$turn/$file", @more);

		my $r = $t->get("/$repo/resolve/main/$turn/$file",
			{ Authorization => "Bearer $token" });

		is(Digest::SHA::sha256_hex($r->{body}),
			sha256_file("$dir/$file"), "$name: $file is intact");
	}

	return uploaded($t) - $before;
}

my $all = 2_000_000;                     # the files can be compressed

# --------------------------------------------------------------------------
# callers

cmp_ok(uploads('first', token('alice'), 'alice/open'), '>', $all,
	'first: sent');
cmp_ok(uploads('again', token('alice'), 'alice/open'), '<', 20_000,
	'again: not sent');
cmp_ok(uploads('another repo', token('alice'), 'alice/two', '--private'), '<',
	20_000, 'another repo: not sent');
cmp_ok(uploads('another user', token('bob'), 'bob/own'), '<', 20_000,
	'another user: not sent, since they can read the files');
uploads('a token of the repo', token('ci', 'alice/open'), 'alice/open');
uploads('a token of another repo', token('ci', 'bob/own'), 'bob/own');
uploads('the team', token('alice'), 'team/plans', '--private');
uploads('the team, another user', token('bob'), 'team/plans');
uploads('a stranger', token('eve'), 'eve/own', '--private');

$table->program('Node', { machine => 'one',
	env => { HUB_TOKEN => 'hf_' . token('bob') } },
	Test::Xet::Real::node_program(), "$FindBin::Bin/hub_ops.mjs",
	Test::Xet::Real::build() . '/npm', $t->url(''), 'bob/own', 'upload',
	'node', "$dir/tiny");

# --------------------------------------------------------------------------
# the files that they remember are deleted and collected

$t->http('DELETE', '/api/repos/delete', { Authorization => "Bearer "
	. token($_->[0]), 'Content-Type' => 'application/json' },
	\"{\"organization\":\"$_->[1]\",\"name\":\"$_->[2]\"}")
	for [ qw/ alice alice open / ], [ qw/ alice alice two / ],
		[ qw/ bob bob own / ], [ qw/ alice team plans / ],
		[ qw/ eve eve own / ];

collect($t);
is($t->sql('SELECT count(*) FROM xet.xorbs'), 0, 'collected');

cmp_ok(uploads('collected', token('alice'), 'alice/open'), '>', $all,
	'collected: sent');

# --------------------------------------------------------------------------
# copies were lost: the scrub, or "xet verify", has found this, or not yet

$t->sql('SELECT xet.xorb_damaged(array_agg(hash), array_agg(copy_id))'
	. ' FROM xet.xorbs');
cmp_ok(uploads('damaged', token('alice'), 'alice/open'), '>', $all,
	'damaged: sent');

unlink(glob($t->store() . '/xorbs/default/*/*'));

$table->hf('lost: the server finds it', { machine => 'one', fails => 1,
	token => token('alice'), prints => qr/upload again/ }, 'upload',
	'alice/open', "$dir/large", 'lost');

uploads('lost: the second upload', token('alice'), 'alice/open');

# --------------------------------------------------------------------------
# a backup is restored

my @to = (env => { XET_POSTGRES => $t->conninfo(), XET_STORE => $t->store() });

is(xet($t, { @to }, 'backup', "$dir/backup")->{code}, 0, 'a backup');

make_mix("$dir/$_", ++$seed, $size{$_}) for sort keys %size;

uploads('after the backup', token('alice'), 'alice/open');
$t->stop();

my $done = xet($t, { @to }, 'restore', '--force', '--sql',
	build_dir() . '/sql', "$dir/backup");

is($done->{code}, 0, 'restored') or diag($done->{err});
$t->run();
uploads('restored', token('alice'), 'alice/open');

# --------------------------------------------------------------------------
# the data is removed, and the first command is run again

$t->stop();
$t->sql('DROP SCHEMA xet CASCADE');
remove_tree(glob($t->store() . '/*'));
$t->pg()->migrate();
$t->run();

cmp_ok(uploads('new', token('alice'), 'alice/open'), '>', $all, 'new: sent');

$t->done();

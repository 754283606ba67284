#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Each statement that may be retried returns the result of its first run.  The
# test cuts the session after PostgreSQL has run the statement, so nginx sends
# the statement again in another session.  The client gets the result of the
# first run, and the statement takes effect once.  src/http/query/statements.def
# lists the statements; the test fails if it does not cover a statement that
# writes.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Delay;
use Test::Xet::Process qw/ module_table root slurp /;
use Test::Xet::Table;
use Test::Xet::Token;

use JSON::PP ();
use MIME::Base64 ();

my $json = JSON::PP->new()->canonical();
my %hub = Test::Xet::Table::hub('xet_auth off;',
	"location /api/v1/ {\n xet_api; xet_auth off; xet_access store;\n"
	. " client_max_body_size 80m;\n }");

$hub{http} .= slurp(root() . '/conf/xet_audit.conf')
	=~ s!/var/log/nginx/xet_audit.log!%%DIR%%/audit.log!r;

my $t = Test::Xet->new(%hub, workers => 1);
my $way = Test::Xet::Delay->new($t->pg()->socket_dir(), $t->dir() . '/way');

$t->write_conf(undef, directives => { xet_postgres => '"'
	. $t->conninfo() =~ s!host=\S+!'host=' . $way->dir()!er . '"' });
$t->token_key();
$t->run();
$t->allow(qr/PostgreSQL|is retried|connect/);

# --------------------------------------------------------------------------
# the retry rule of each statement

my %rule = map { $_->{name} => $_->{again} } @{ module_table('statements') };

my %volatile = map { $_ => 1 } split(' ', $t->sql("SELECT string_agg(proname,"
	. " ' ') FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
	. " WHERE n.nspname = 'xet' AND p.provolatile = 'v'"));

# these functions are volatile only because they take locks; they write nothing

my %locks = map { $_ => 1 } qw/ gc_copies orphans orphans_due shard_slices
	shard_suspects hub_claims chunk_find xorb_get xorb_grant /;

for my $name (sort grep { $rule{$_} eq 'READ' } keys %rule) {
	my $function = $name =~ s/_all$//r;

	ok(!$volatile{$function} || $locks{$name}, "$name: reads only");
}

# --------------------------------------------------------------------------
# writes by client requests

create('r');
create('gone');
commit('r', inline('a', 'a'));
is(post('/api/buckets/me/b', {})->{status}, 200, 'a bucket');

my $file = put('a file of the store');
my $n = 0;

my %acts = (
	hub_create => sub { (create_of('made'), 200,
		"name = 'made'", 'hub_repos') },
	hub_ref_put => sub { (sub {
		post('/api/models/me/r/branch/x', {}) }, 200,
		"name = 'heads/x'", 'hub_refs') },
	hub_squash => sub { (sub {
		post('/api/models/me/r/super-squash/main', { message => 'q' })
		}, 200, "title = 'q'", 'hub_commits') },
	hub_move => sub { (sub { post('/api/repos/move', {
		fromRepo => 'me/gone', toRepo => 'me/gone2' }) }, 200,
		"name = 'gone2'", 'hub_repos') },
	hub_settings => sub { (sub { $t->put('/api/models/me/gone2/settings',
		'{"private":true}', js()) }, 200,
		"name = 'gone2' AND private", 'hub_repos') },
	hub_delete => sub { (sub { $t->http('DELETE', '/api/repos/delete',
		js(), '{"name":"me/gone2"}') }, 200,
		"name NOT LIKE 'gone%' AND name = 'r'", 'hub_repos') },
	hub_stage => sub { (sub { commit('r', inline('s', 's')) }, 200,
		"path = 's'", 'hub_paths') },
	hub_commit => sub { (sub { commit('r', inline('c', 'c')) }, 200,
		"path = 'c'", 'hub_paths') },
	hub_batch => sub { (sub { $t->post('/api/buckets/me/b/batch',
		$json->encode({ type => 'addFile', path => 'x',
			xetHash => '0' x 64 }), js()) }, 200,
		"path = 'x'", 'hub_paths') },
	xorb_put => sub { my $data = random_bytes(++$n, 30000);
		my $x = make_xorb($data, scheme => 'none');
		(sub { $t->post("/api/v1/xorbs/default/$x->{hash}",
			\$x->{bytes}) }, '200 \{"was_inserted":true}') },
	file_put => sub { (sub { $t->put('/api/v1/files', 'another one') },
		'200 .*"hash"', "size = 11", 'files') },
	shard_put => sub { (sub { $t->put('/api/v1/files', 'another one') },
		'200 .*"hash"') },
	file_delete => sub { (sub { $t->http('DELETE',
		"/api/v1/files/$file") }, 204, 'hash IS NULL', 'files') },
);

for my $name (qw/ hub_create hub_ref_put hub_move hub_settings hub_delete
	hub_stage hub_commit hub_batch hub_squash xorb_put file_put shard_put
	file_delete /)
{
	my ($do, $want, $where, $table) = $acts{$name}->();

	$way->lose($name);

	my $r = $do->();

	ok($way->lost(), "$name: its response is lost");
	like("$r->{status} $r->{body}", qr/^$want/,
		"$name: the first result is returned")
		or diag($r->summary());

	next if !$table;

	is($t->sql("SELECT count(*) FROM xet.$table WHERE $where"), 1,
		"$name: takes effect once");
}

$way->lose('hub_ref_put');
is($t->http('DELETE', '/api/models/me/r/branch/x')->{status}, 200,
	'a branch is deleted: 200');
ok($way->lost(), 'its first response was lost');
is($t->http('DELETE', '/api/models/me/r/branch/x')->{status}, 404,
	'again, by another request: 404');
is($t->http('DELETE', "/api/v1/files/$file")->{status}, 404,
	'a file again, by another request: 404');

ok(wait_for(10, sub { slurp($t->dir() . '/audit.log')
	=~ /"result":"removed"/ }), 'the deletion is in the audit log');

# --------------------------------------------------------------------------
# statements that are run twice, as they are after a lost session

my $act = "'\\x" . '0a' x 16 . "'";
my $other = "'\\x" . '0b' x 16 . "'";
my $hash = "'\\x" . 'ab' x 32 . "'";

$t->sql("INSERT INTO xet.repos (name) VALUES ('p'), ('q')");
$t->sql("INSERT INTO xet.repo_files (repo_id, file_id) SELECT r.id, f.id"
	. " FROM xet.repos r, xet.files f WHERE r.name = 'p'"
	. ' AND f.hash IS NOT NULL LIMIT 1');

my $one = $t->sql("SELECT '''\\x' || encode(f.hash, 'hex') || ''''"
	. ' FROM xet.repo_files rf JOIN xet.files f ON f.id = rf.file_id'
	. " JOIN xet.repos r ON r.id = rf.repo_id WHERE r.name = 'p'");

my $node = "'\\x" . '0c' x 16 . "'";
my %said = (
	repo_forget => "xet.repo_forget('p', $one, $act)",
	repo_delete => "xet.repo_delete('q', $other)",
	gc_files => "xet.gc_once('\\x" . '01' x 16 . "', 'files', 1000)",
	gc_xorbs => "xet.gc_once('\\x" . '02' x 16 . "', 'xorbs', 1000, '0')",
	gc_removed => 'below',
	usage_settle => "xet.gc_once('\\x" . '04' x 16 . "', 'settle', 1000)",
	job_keep => "xet.job_keep('t', $node, 1, 1, '1000', 'c',"
		. q[ '{"n":1}', NULL)],
	job_done => "xet.job_done('t', $node, 1, '{}', NULL)",
	hub_here => "xet.hub_here('p', ARRAY[$hash\::bytea])",
	hub_keep => "xet.hub_keep('p', ARRAY[$hash\::bytea], true)",
	copies_lost => "xet.copies_lost(ARRAY[$hash\::bytea], '{1}')",
	xorb_damaged => "xet.xorb_damaged(ARRAY[$hash\::bytea], '{1}')",
	xorb_intact => "xet.xorb_intact($hash, 1)",
	xorb_advertised => "xet.xorb_advertised(ARRAY[$hash\::bytea])",
	shard_unstage => "xet.shard_unstage($act)",
	hub_unstage => "xet.hub_unstage($act)",
	hub_card_put => "xet.hub_card_put('p', $one, NULL)",
	orphans_found => "xet.orphans_found('1')",
	heal_later => 'xet.heal_later((SELECT min(id) FROM xet.xorbs), (SELECT'
		. ' copy_id FROM xet.xorbs ORDER BY id LIMIT 1))',
	write_probe => 'xet.write_probe()',
	caller_refused => "xet.caller_refused('p', 'ann')",
);

$t->sql("SELECT * FROM xet.job_take('t', $node, '1000', '1000')");

my ($first, $again);

for my $name (qw/ job_keep job_done heal_later hub_card_put repo_forget
	repo_delete hub_here hub_keep copies_lost xorb_damaged
	xorb_intact xorb_advertised shard_unstage hub_unstage orphans_found
	write_probe caller_refused gc_files gc_xorbs gc_removed
	usage_settle /)
{
	my $args = $said{$name};

	# both runs must have the same arguments, even if the table changes
	# between them

	if ($name eq 'gc_removed') {
		my $copies = $t->sql('SELECT quote_literal(array_agg(hash'
			. " ORDER BY hash)::text) || '::bytea[], '"
			. ' || quote_literal(array_agg(copy_id ORDER BY'
			. ' hash)::text)'
			. " || '::integer[]' FROM xet.gc_copies");

		$args = "xet.gc_once('\\x" . '03' x 16 . "', 'removed', NULL,"
			. " NULL, $copies)";
	}

	$first = $t->sql("SELECT * FROM $args");
	$again = $t->sql("SELECT * FROM $args");

	is($again, $first, "$name: the same result ($first)");
}

is($t->sql("SELECT max(tries) FROM xet.heals"), 1, 'heal_later: counted once');

# checks that every statement is tested above, or elsewhere, or returns no
# result

my %elsewhere = map { $_ => 1 } qw/ xorb_heal shard_stage zt_put
	zt_reports_put job_take hub_begin hub_proven hub_duplicate copy_ids_take
	sweep /;

for my $name (sort grep { $rule{$_} ne 'READ' } keys %rule) {
	ok($acts{$name} || $said{$name} || $elsewhere{$name},
		"$name: is covered");
}

$t->done();

# --------------------------------------------------------------------------

sub js { return { 'Content-Type' => 'application/json' } }

sub post {
	my ($uri, $body) = @_;

	return $t->post($uri, $json->encode($body), js());
}

sub put { return $t->put('/api/v1/files', $_[0])->json()->{hash} }

sub create_of {
	my ($name) = @_;

	return sub { post('/api/repos/create', { name => $name }) };
}

sub create { is(create_of(@_)->()->{status}, 200, "repo $_[0]") }

sub commit {
	my ($repo, @lines) = @_;

	return $t->post("/api/models/me/$repo/commit/main", join('',
		map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } }, @lines),
		{ 'Content-Type' => 'application/x-ndjson' });
}

sub inline {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64',
		content => MIME::Base64::encode_base64($data, '') } };
}

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A server with its own database role, created as in docs/install.md: the role
# has all privileges that the server needs, including those to repair damage,
# and owns no objects.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ root slurp wait_for /;

my $t = Test::Xet->new(workers => 1, log => 'info');

$t->run();

my ($grants) = slurp(root() . '/docs/install.md')
	=~ /^```sql\n(CREATE ROLE xet_server LOGIN;\n.*?)^```/ms
	or die "docs/install.md grants nothing\n";

$t->sql($grants);
$t->write_conf(undef, directives => { xet_postgres => '"'
	. ($t->conninfo() =~ s/user=\w+/user=xet_server/r) . '"' });
$t->reload();

ok(wait_for(10, sub { $t->get('/api/health')->{status} == 200 }), 'health');

my @files = map { $t->upload(mix($_, 400000)) } 1 .. 3;

is($_->{result}, 1, 'a file by xorbs and shard') for @files;
is($t->sql("SELECT DISTINCT usename FROM pg_stat_activity"
	. " WHERE application_name = 'nginx-xet'"), 'xet_server',
	'its sessions');

sub works {
	my ($name, $seed) = @_;

	my $data = mix($seed, 500000);
	my $r = $t->http('PUT', '/api/v1/files', {}, \$data);

	is($r->{status}, 200, "$name: PUT") or diag($r->{body});
	ok($t->get('/api/v1/files/' . $r->json()->{hash})->{body} eq $data,
		"$name: GET");
	is($t->upload(mix($seed + 1, 300000))->{result}, 1,
		"$name: xorb and shard");
	is($t->post('/api/v1/shards', \$files[0]{shard})->{status}, 200,
		"$name: a shard that is known");
	is($t->get("/api/v1/chunks/default/"
		. $files[0]{xorbs}[0]{chunks}[0]{hash})->{status}, 200,
		"$name: dedup");
}

works('at first', 10);

# a xorb whose copy is missing

my $x = $files[1]{xorbs}[0];

$t->remove_copy($t->copy($x->{hash}));
$t->allow(qr/is missing or has another size/);

is($t->head("/api/v1/xorbs/default/$x->{hash}")->{status}, 404, 'gone');
ok(wait_for(10, sub { $t->sql('SELECT count(*) FROM xet.xorbs'
	. ' WHERE damaged_at IS NOT NULL') == 1 }), 'on record');

works('beside damage', 20);

is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})->{status}, 200,
	'sent again');
is($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'), 0,
	'healed');

# the role may delete files

is($t->http('DELETE', "/api/v1/files/$files[2]{hash}")->{status}, 204,
	'a file is deleted');

$t->sql("SELECT xet.repo_create('a/a')");
$t->sql("SELECT xet.repo_add('a/a', hash) FROM xet.files"
	. ' WHERE hash IS NOT NULL');
$t->sql("INSERT INTO xet.xorb_repos (xorb_id, repo_id) SELECT x.id, r.id"
	. ' FROM xet.xorbs x, xet.repos r');
is($t->sql("SELECT xet.repo_delete('a/a')", user => 'xet_server'), 't',
	'a repo is deleted');

# a shard of many batches, with terms that differ from the known terms

my $y = send_xorb($t, random_bytes(7, 640), scheme => 'none', sizes => [ 10 ]);
my $large = make_large_shard($y, [ [ map { my $start = $_ * 7 % 60;
	[ $start, $start + 1 + $_ % 4 ] } 1 .. 25000 ] ]);

is($t->post('/api/v1/shards', \$large->{bytes}, {}, timeout => 60)->{status},
	200, 'a large shard');
ok(eval { $t->sql('SET ROLE xet_server; SELECT xet.sweep()'); 1 },
	'old rows are deleted') or diag($@);

ok(eval { $t->sql("SET ROLE xet_server; SELECT xet.repo_create('a/a');"
	. " SELECT xet.repo_add('a/a', (SELECT hash FROM xet.files LIMIT 1));"
	. " SELECT xet.repo_set_public('a/a', true)"); 1 },
	'a file in a repo, which becomes public') or diag($@);

# the role may collect garbage

$t->sql('UPDATE xet.files SET held = false');

ok(eval { $t->sql('SET ROLE xet_server; SELECT xet.gc_files(1000);'
	. " SELECT xet.gc_xorbs(0, 1000)"); 1 }, 'what nobody has is collected')
	or diag($@);
cmp_ok($t->sql('SET ROLE xet_server; SELECT count(*) FROM'
	. ' xet.gc_copies(1000)') =~ s/SET\n//r, '>', 0, 'copies are to go');
ok(eval { $t->sql('SET ROLE xet_server; SELECT xet.gc_removed('
	. 'array_agg(hash), array_agg(copy_id)) FROM xet.gc_copies'); 1 },
	'and are gone') or diag($@);

ok(!eval { $t->sql('SET ROLE xet_server; DROP TABLE xet.files'); 1 },
	'the schema is not its own');

$t->done();

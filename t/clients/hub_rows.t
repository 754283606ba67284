#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A table of operations of unmodified clients with this server as their only
# Hub: huggingface_hub with and without Xet, its command hf, @huggingface/hub in
# Node and in Chromium, curl, wget, aria2c and git-lfs.  Clients fall back
# silently from Xet to other protocols, so the requests are checked, too.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Browser;
use Test::Xet::Process qw/ slurp spew /;
use Test::Xet::Real;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use File::Find ();
use JSON::PP ();

my $mib = 1048576;
my $xorbs = qr!^/cas/.*/xorbs/!;
my $lfs = qr!^/api/lfs/!;

my $t = Test::Xet->new(Test::Xet::Table::hub());

$t->token_key();
$t->run();

my $table = Test::Xet::Table->new($t);
my $dir = $table->dir();
my $url = $t->url('');

my $size = 4 * $mib;
my $file = make_mix("$dir/file", 1, $size);

# --------------------------------------------------------------------------
# the Python interface

for my $xet (1, 0) {
	my $name = $xet ? 'Python' : 'Python without Xet';
	my $o = { env => $xet ? {} : { HF_HUB_DISABLE_XET => 1 } };

	$table->requests();
	$table->script($name, $o, $table->python(), 'hub_table.py', 'repos',
		$table->machine());

	my @r = $table->requests();
	my ($some, $none) = $xet ? ($xorbs, $lfs) : ($lfs, $xorbs);

	cmp_ok(Test::Xet::Table::sent($some, @r), '>', 3_000_000,
		"$name: the bytes are sent by this protocol");
	is(Test::Xet::Table::sent($none, @r), 0,
		"$name: and by no other protocol");
	is(scalar(grep { $_->[1] =~ m!^/cas/.*/reconstructions/! } @r) > 0,
		!!$xet, "$name: downloads use the same protocol");
}

$table->script('Python', {}, $table->python(), 'hub_table.py', 'buckets',
	$table->machine());

# --------------------------------------------------------------------------

hf_account();
hf_upload({ }, 'hf');
hf_upload({ HF_HUB_DISABLE_XET => 1 }, 'hf without Xet');
hf_repos();
hf_buckets();

my $browser = Test::Xet::Browser->new();

for my $command (qw/ repos buckets /) {
	$table->requests();
	$table->script('Node', {}, Test::Xet::Real::node_program(),
		'hub_table.mjs', Test::Xet::Real::build() . '/npm', $command,
		$url, 'hf_test', $table->machine());
	by_xet("Node, $command");

	SKIP: {
		skip 'no chromium', 1 unless $browser;

		$table->page('Chromium', {}, $browser, $command);
		by_xet("Chromium, $command");
	}
}

undef $browser;

plain();

SKIP: {
	skip 'no git-lfs', 1 if system('git lfs version >/dev/null 2>&1');

	git_lfs();
}

$t->done();

# --------------------------------------------------------------------------
# the hf command

sub hf_account {
	my %o = (machine => 'login', token => '');

	$table->hf('hf auth login', { %o, prints => qr/Login successful/ },
		qw/ auth login --token hf_mine /);
	$table->hf('hf auth whoami', { %o, prints => qr/\bme\b/ },
		qw/ auth whoami /);
	$table->hf('hf auth token', { %o, prints => qr/hf_mine/ },
		qw/ auth token /);
	$table->hf('hf auth list', { %o, prints => qr/hf_mine|\*/ },
		qw/ auth list /);
	$table->hf('hf auth logout', \%o, qw/ auth logout /);
	$table->hf('hf auth whoami: nobody any more', { %o,
		prints => qr/not logged in/i, fails => 1 }, qw/ auth whoami /);
}

# Uploads a folder, then a second version of it from another machine, and
# downloads both versions.

sub hf_upload {
	my ($env, $name) = @_;

	my $xet = !%$env;
	my $repo = $xet ? 'me/up' : 'me/up-plain';
	my $path = $xet ? $xorbs : $lfs;
	my ($one, $two) = ("$dir/$name-1", "$dir/$name-2");
	my %o = (env => $env);

	system('mkdir', '-p', "$one/d") == 0 or die;
	system('cp', $file, "$one/w.bin") == 0 or die;
	spew("$one/d/same.bin", mix(7, 300_000));
	spew("$one/README.md", "# A model\n");
	spew("$one/gone.txt", 'gone');

	$table->requests();
	$table->hf("$name upload: a folder", { %o, machine => "$name-a" },
		'upload', $repo, $one, '.');
	cmp_ok(Test::Xet::Table::sent($path, $table->requests()), '>',
		$size / 4, "$name upload: a folder: sent");

	$table->hf("$name upload: the same again", { %o,
		machine => "$name-b" }, 'upload', $repo, $one, '.');

	my $sent = Test::Xet::Table::sent($path, $table->requests());

	is($sent, 0, "$name upload: the same again: nothing is sent");

	# changes 50,000 bytes in the middle; without Xet the client sends the
	# complete file

	system('cp', '-r', $one, $two) == 0 or die;
	rename(insert_into($file, $size / 2, make_mix("$dir/new", 2, 50000)),
		"$two/w.bin") or die;
	unlink("$two/gone.txt");

	$table->hf("$name upload: a second version, from another machine",
		{ %o, machine => "$name-c" }, 'upload', $repo, $two, '.',
		'--delete', '*.txt', '--commit-message', 'second');
	$sent = Test::Xet::Table::sent($path, $table->requests());

	cmp_ok($sent, '>', 45_000, "$name upload: new data is sent");
	cmp_ok($sent, '<', $xet ? $size / 5 : $size + 100_000,
		"$name upload: stored data is not sent again");

	$table->hf("$name download", { %o, machine => "$name-d" },
		'download', $repo, '--local-dir', "$two-down");
	same("$two-down", $two, "$name download: the second version");

	my @r = grep { $_->[0] eq 'GET' } $table->requests();
	my @ways = map { my $way = $_; scalar(grep { $_->[1] =~ $way } @r) }
		qr!^/cas/.*/reconstructions/!, qr!/resolve/!;

	cmp_ok($ways[$xet ? 0 : 1], '>', 0, "$name download: by this protocol");
	is($ways[$xet ? 1 : 0], 0, "$name download: by no other protocol");

	$table->hf("$name download: a file", { %o, machine => "$name-d" },
		'download', $repo, 'w.bin', '--local-dir', "$two-one");
	is(sha256_file("$two-one/w.bin"), sha256_file("$two/w.bin"),
		"$name download: a file: its bytes");

	my $commits = $t->get("/api/models/$repo/commits/main")->json();

	is($commits->[0]{title}, 'second', "$name upload: the message");

	$table->hf("$name download: a former commit", { %o,
		machine => "$name-d" }, 'download', $repo, '--revision',
		$commits->[1]{id}, '--local-dir', "$one-down");
	same("$one-down", $one, "$name download: the first version");

	$table->requests();
	$table->hf("$name download: again", { %o, machine => "$name-d" },
		'download', $repo, '--local-dir', "$two-down");
	is(scalar(grep { $_->[0] eq 'GET' && $_->[1] =~ m!/resolve/|^/xorbs/! }
		$table->requests()), 0, "$name download: again: no bytes");

	$table->hf("$name download: include", { %o, machine => "$name-d" },
		'download', $repo, '--include', '*.md', '--local-dir',
		"$two-part");
	is(files("$two-part"), 'README.md',
		"$name download: include: only these files");
}

sub hf_repos {
	my %o = (machine => 'repos');

	$table->hf('hf repos create', { %o, prints => qr!\Q$url\E/me/r\b! },
		qw! repos create me/r !);
	$table->hf('hf repos create: twice', { %o, fails => 1,
		prints => qr/already/ }, qw! repos create me/r !);
	$table->hf('hf repos create: exist-ok', \%o,
		qw! repos create me/r --exist-ok !);
	$table->hf('hf upload: a file', \%o, 'upload', 'me/r',
		"$dir/new", 'd/new.bin');
	$table->hf('hf cp: to a repo', \%o, 'cp', "$dir/hf-1/README.md",
		'hf://me/r/README.md');
	$table->hf('hf cp: of a repo', { %o, prints => qr/^# A model/m },
		'cp', 'hf://me/r/README.md', '-');

	$table->hf('hf cp: between repos', \%o, 'cp',
		'hf://me/r/README.md', 'hf://me/up/copy.md');
	is($t->get('/me/up/resolve/main/copy.md')->{body},
		"# A model\n", 'hf cp: between repos: the file is in the repo');
	$table->hf('hf cp: between repos: a folder', \%o, 'cp',
		'hf://me/r/d', 'hf://me/up/');
	is($t->get('/me/up/resolve/main/d/new.bin')->{status}, 200,
		'hf cp: between repos: a folder: the file is in the repo');

	$table->hf('hf models card', { %o, prints => qr/# A model/ },
		qw! models card me/r !);
	$table->hf('hf models info', { %o, prints => qr!me/r! },
		qw! models info me/r !);
	$table->hf('hf models ls', { %o, prints => qr!me/r\b!m },
		qw! models ls --author me !);
	$table->hf('hf models ls: files', { %o, prints => qr!d/new\.bin! },
		qw! models ls me/r -R !);

	$table->hf('hf repos tag create', \%o,
		qw! repos tag create me/r v1 -m first !);
	$table->hf('hf repos tag list', { %o, prints => qr/\bv1\b/ },
		qw! repos tag list me/r !);
	$table->hf('hf repos branch create', \%o,
		qw! repos branch create me/r dev/x !);
	$table->hf('hf upload: to a branch', \%o, 'upload', 'me/r',
		"$dir/new", 'branch.bin', '--revision', 'dev/x');
	$table->hf('hf download: of a branch', \%o, qw! download me/r
		branch.bin --revision dev/x --local-dir !, "$dir/branch");
	is(sha256_file("$dir/branch/branch.bin"), sha256_file("$dir/new"),
		'hf download: of a branch: its bytes');
	$table->hf('hf download: not of the other one', { %o, fails => 1,
		prints => qr/branch\.bin|not found/i },
		qw! download me/r branch.bin !);
	$table->hf('hf repos delete-files', \%o,
		qw! repos delete-files me/r d/* !);
	is(join(' ', map { $_->{path} } @{ $t->get(
		'/api/models/me/r/tree/main?recursive=1')->json() }),
		'README.md', 'hf repos delete-files: what is left');
	$table->hf('hf download: of a tag', \%o, qw! download me/r d/new.bin
		--revision v1 --local-dir !, "$dir/tag");
	is(sha256_file("$dir/tag/d/new.bin"), sha256_file("$dir/new"),
		'hf download: of a tag: the bytes at that time');
	$table->hf('hf repos branch delete', \%o,
		qw! repos branch delete me/r dev/x !);
	$table->hf('hf repos tag delete', \%o,
		qw! repos tag delete me/r v1 -y !);

	$table->hf('hf download: into the cache', \%o, qw! download me/r !);
	$table->hf('hf cache verify', { %o, prints => qr/verified|match/i },
		qw! cache verify me/r !);
	$table->hf('hf cache ls', { %o, prints => qr!me/r! }, qw! cache ls !);
	$table->hf('hf repos settings', \%o,
		qw! repos settings me/r --private !);
	ok($t->get('/api/models/me/r')->json()->{private},
		'hf repos settings: the repo is private');
	$table->hf('hf repos move', \%o, qw! repos move me/r me/r2 !);
	$table->hf('hf download: by the old name', \%o, qw! download me/r
		README.md --local-dir !, "$dir/moved");
	$table->hf('hf repos delete', \%o, qw! repos delete me/r2 -y !);
	$table->hf('hf download: what is gone', { %o, fails => 1,
		prints => qr/not found/i }, qw! download me/r2 !);
}

sub hf_buckets {
	my %o = (machine => 'buckets');
	my ($src, $down) = ("$dir/bucket", "$dir/bucket-down");
	my $b = 'hf://buckets/me/bk';

	system('mkdir', '-p', "$src/d") == 0 or die;
	spew("$src/a.txt", "one\n");
	spew("$src/empty", '');
	spew("$src/d/b.txt", "two\n");
	system('cp', $file, "$src/d/c.bin") == 0 or die;

	$table->hf('hf buckets create', \%o, qw! buckets create me/bk !);
	$table->hf('hf buckets create: twice', { %o, fails => 1,
		prints => qr/already/ }, qw! buckets create me/bk !);
	$table->hf('hf buckets sync: up', \%o, 'buckets', 'sync', $src, $b);
	$table->hf('hf buckets list', { %o, prints => qr!d/c\.bin! },
		qw! buckets list me/bk -R !);
	$table->hf('hf buckets sync: down', \%o, 'buckets', 'sync', $b, $down);
	same($down, $src, 'hf buckets sync: the same comes down');

	$table->requests();
	$table->hf('hf buckets sync: nothing to do', \%o, 'buckets', 'sync',
		$src, $b);
	is(scalar(grep { $_->[0] eq 'POST' && $_->[1] =~ m!/batch$! }
		$table->requests()), 0, 'hf buckets sync: nothing is done');

	unlink("$src/d/b.txt");
	spew("$src/d/new.txt", "three\n");
	$table->hf('hf buckets sync: up, with --delete', \%o, 'buckets',
		'sync', $src, $b, '--delete');
	$table->hf('hf sync: down, with --delete', \%o, 'sync', $b, $down,
		'--delete');
	same($down, $src, 'hf sync: what was deleted is gone');

	$table->hf('hf buckets sync: to a folder that is not there', \%o,
		'buckets', 'sync', $src, "$b/sub/folder");
	$table->hf('hf buckets sync: of a folder', \%o, 'buckets', 'sync',
		"$b/sub/folder", "$down-sub");
	same("$down-sub", $src, 'hf buckets sync: of a folder: its files');
	$table->hf('hf buckets sync: include', \%o, 'buckets', 'sync', $b,
		"$down-part", '--include', 'd/*.txt');
	is(files("$down-part"), 'd/new.txt',
		'hf buckets sync: include: only these files');

	$table->hf('hf buckets cp: up', \%o, 'buckets', 'cp', "$src/a.txt",
		"$b/up/a2.txt");
	$table->hf('hf buckets cp: down', \%o, 'buckets', 'cp', "$b/d/c.bin",
		"$dir/c.out");
	is(sha256_file("$dir/c.out"), sha256_file($file),
		'hf buckets cp: down: its bytes');
	$table->hf('hf buckets cp: to the output', { %o,
		prints => qr/^one$/m }, 'buckets', 'cp', "$b/up/a2.txt", '-');

	$table->hf('hf buckets create: another', \%o,
		qw! buckets create me/bk2 !);
	$table->requests();
	$table->hf('hf buckets cp: to another bucket', \%o, 'buckets', 'cp',
		"$b/d/c.bin", 'hf://buckets/me/bk2/copy.bin');
	is(Test::Xet::Table::sent($xorbs, $table->requests()), 0,
		'hf buckets cp: to another bucket: nothing is sent');
	is(sha256_hex($t->get('/buckets/me/bk2/resolve/copy.bin')->{body}),
		sha256_file($file), 'hf buckets cp: to another bucket: bytes');
	$table->hf('hf cp: of a repo', \%o, 'cp', 'hf://me/up/README.md',
		"$b/README.md");

	$table->hf('hf buckets rm: a file', \%o,
		qw! buckets rm me/bk/a.txt -y !);
	$table->hf('hf buckets rm: a folder', \%o,
		qw! buckets rm me/bk/sub -R -y !);

	my $left = join(' ', sort map { $_->{path} } grep { $_->{type} eq
		'file' } @{ $t->get('/api/buckets/me/bk/tree?recursive=1')
			->json() });

	is($left, 'README.md d/c.bin d/new.txt empty up/a2.txt',
		'hf buckets rm: what is left');

	$table->hf('hf buckets info', { %o, prints => qr!me/bk\b! },
		qw! buckets info me/bk !);
	$table->hf('hf buckets list: all', { %o, prints => qr!me/bk2! },
		qw! buckets list !);
	$table->hf('hf buckets settings', \%o,
		qw! buckets settings me/bk --private !);
	$table->hf('hf buckets move', \%o, qw! buckets move me/bk2 me/bk3 !);
	$table->hf("hf buckets delete: $_", \%o, 'buckets', 'delete', $_,
		'-y') for qw! me/bk me/bk3 !;
	$table->hf('hf buckets list: one that is gone', { %o, fails => 1,
		prints => qr/not found/i }, qw! buckets list me/bk !);
}

# Checks that bytes were sent and fetched by Xet.

sub by_xet {
	my ($name) = @_;

	my @r = $table->requests();

	cmp_ok(scalar(grep { $_->[0] eq 'POST' && $_->[1] =~ m!/shards$! } @r),
		'>', 0, "$name: sent by Xet");
	cmp_ok(scalar(grep { $_->[1] =~ m!^/cas/.*/reconstructions/! } @r),
		'>', 0, "$name: fetched by Xet");
}

# --------------------------------------------------------------------------
# clients without Hub support

sub plain {
	my $w = "$url/me/up/resolve/main/w.bin";
	my $two = "$dir/hf-2/w.bin";
	my $sha256 = sha256_file($two);
	my $out = "$dir/plain";

	mkdir($out);

	my @curl = qw/ curl -sS -f -L /;

	$table->program('curl', {}, @curl, '-o', "$out/curl", $w);
	is(sha256_file("$out/curl"), $sha256, 'curl: the bytes');
	$table->program('curl -r', {}, @curl, '-r', '1000000-1999999', '-o',
		"$out/part", $w);
	ok(slurp("$out/part") eq file_slice($two, 1000000, 2000000),
		'curl -r: the bytes');
	$table->program('curl -r: the last ones', {}, @curl, '-r', '-100',
		'-o', "$out/last", $w);
	ok(slurp("$out/last") eq file_slice($two, (-s $two) - 100, -s $two),
		'curl -r: the last ones: the bytes');

	spew("$out/half", file_slice($two, 0, 1_500_000));
	$table->program('curl -C -', {}, @curl, '-C', '-', '-o', "$out/half",
		$w);
	is(sha256_file("$out/half"), $sha256, 'curl -C -: the bytes');

	$table->program('curl -OJ: the name of the file', { dir => $out },
		@curl, '-OJ', "$url/me/up/resolve/main/d/same.bin");
	ok(-s "$out/same.bin" == 300_000, 'curl -OJ: the file was written');
	$table->program('curl --etag-compare', {}, @curl, '--etag-save',
		"$out/etag", '-o', "$out/first", $w);
	$table->program('curl --etag-compare: not again', {
		prints => qr/^304/ }, @curl, '--etag-compare', "$out/etag",
		'-o', "$out/second", '-w', '%{http_code}', $w);
	$table->program('curl: a file that is not there', { fails => 1,
		prints => qr/404/ }, @curl, "$w-no");
	$table->program('curl -I', { prints => qr/^X-Repo-Commit: \w{40}\r$/mi
		}, @curl, '-I', $w);
	$table->program('curl: of a bucket\'s kind, by a token', {
		prints => qr/"name":"me"/ }, @curl, '-H',
		'Authorization: Bearer hf_x', "$url/api/whoami-v2");

	$table->program('wget', {}, 'wget', '-q', '-O', "$out/wget", $w);
	is(sha256_file("$out/wget"), $sha256, 'wget: the bytes');
	spew("$out/w.bin", file_slice($two, 0, 2_000_000));
	$table->program('wget -c', { dir => $out, prints =>
		qr/206 Partial/ }, 'wget', '-c', $w);
	is(sha256_file("$out/w.bin"), $sha256, 'wget -c: the bytes');
	$table->program('aria2c: four connections', {}, 'aria2c', '-q',
		'-x4', '-s4', '-k1M', '-d', $out, '-o', 'aria', $w);
	is(sha256_file("$out/aria"), $sha256,
		'aria2c: four connections: the bytes');
}

# The server stores LFS files, but no git objects.  So the git objects are in a
# local git repo, and the test runs git-lfs itself.

sub git_lfs {
	my $lfs_url = "$url/me/lfs.git/info/lfs";
	my %o = (machine => 'git');
	my ($from, $to) = ("$dir/git-1", "$dir/git-2");
	my $oid = sha256_file($file);

	$t->post('/api/repos/create', \'{"name":"lfs","organization":"me"}',
		{ 'Content-Type' => 'application/json' });

	my $git = sub {
		my ($name, $where, @args) = @_;

		local $Test::Builder::Level = $Test::Builder::Level + 1;

		return $table->program($name, { %o, dir => $where, env => {
			GIT_TERMINAL_PROMPT => 0, GIT_CONFIG_NOSYSTEM => 1,
			$name =~ /without/ ? (GIT_LFS_SKIP_SMUDGE => 1) : ()
		} }, 'git', @args);
	};

	for ([ 'user.name', 'me' ], [ 'user.email', 'me@localhost' ],
		[ 'init.defaultBranch', 'main' ],
		[ 'safe.directory', '*' ], [ 'lfs.url', $lfs_url ],
		[ "lfs.$lfs_url.locksverify", 'false' ])
	{
		system('git', 'config', '--file', $table->machine('git')
			. '/.gitconfig', @$_) == 0 or die;
	}

	mkdir($from);
	$git->('git lfs install', $from, qw/ lfs install --skip-repo /);
	$git->('git init', $from, qw/ init -q . /);
	system('cp', $file, "$from/w.bin") == 0 or die;
	$git->('git lfs track', $from, qw/ lfs track *.bin /);
	$git->('git add', $from, qw/ add . /);
	$git->('git commit', $from, qw/ commit -q -m one /);

	$table->requests();
	$git->('git lfs push', $from, qw/ lfs push --object-id /, $lfs_url,
		$oid);
	cmp_ok(Test::Xet::Table::sent($lfs, $table->requests()), '>', $size,
		'git lfs push: sent');
	$git->('git lfs push: again', $from, qw/ lfs push --object-id /,
		$lfs_url, $oid);
	is(Test::Xet::Table::sent($lfs, $table->requests()), 0,
		'git lfs push: again: not sent');

	# a second clone has the same git objects, with pointers instead of
	# files

	$git->('git clone: without the files', $dir, 'clone', '-q', $from,
		$to);
	cmp_ok(-s "$to/w.bin", '<', 200, 'git clone: a pointer');

	$git->('git lfs pull', $to, qw/ lfs pull /);
	is(sha256_file("$to/w.bin"), $oid, 'git lfs pull: the bytes');

	# LFS only stores the bytes; a commit adds the files to the repo

	my $body = join("\n", map { JSON::PP::encode_json($_) }
		{ key => 'header', value => { summary => 'of LFS' } },
		{ key => 'lfsFile', value => { path => 'w.bin', algo =>
			'sha256', oid => $oid, size => $size } });

	is($t->post('/api/models/me/lfs/commit/main', \$body,
		{ 'Content-Type' => 'application/x-ndjson' })->{status}, 200,
		'git lfs push: a commit adds the object');
	$table->hf('hf download: what git-lfs has sent', {}, qw! download
		me/lfs w.bin --local-dir !, "$dir/of-lfs");
	is(sha256_file("$dir/of-lfs/w.bin"), $oid,
		'hf download: a file sent by git-lfs: the bytes');
}

# --------------------------------------------------------------------------

# Returns the files below a folder, except for those that clients create.

sub files {
	my ($root) = @_;

	my @found;

	File::Find::find({ no_chdir => 1, wanted => sub {
		push @found, s!^\Q$root\E/!!r if -f && !m!/\.cache/!;
	} }, $root);

	return join(' ', sort @found);
}

sub same {
	my ($got, $want, $name) = @_;

	my @names = split(/ /, files($want));

	is_deeply({ map { $_ => sha256_file("$got/$_") }
		split(/ /, files($got)) },
		{ map { $_ => sha256_file("$want/$_") } @names }, $name);
}

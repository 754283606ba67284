#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Paths with a meaning for programs on a client, such as ".git/config": no route
# accepts them for a repo or a bucket.  A path that an older version has stored
# can be read, deleted and copied to another name.  "xet verify" reports such a
# path, and "xet get" does not write it.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ slurp spew /;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $t = Test::Xet->new(log => 'info',
	http => Test::Xet::Token::token_directive(), locations => <<'EOC');
location / {
            xet_hub on;
            xet_auth off;
            xet_api_base /cas;
        }

        location /cas/ {
            xet_api;
            xet_api_base /cas;
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        location /api/v1/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location /xorbs/ {
            %%DATA%%
        }
EOC

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical()->utf8();
my $chars = JSON::PP->new()->canonical()->ascii();
my $dir = tempdir(CLEANUP => 1);

post('/api/repos/create', { name => 'm' });
post('/api/buckets/me/b', {});

is(commit(inline('ok', 'all is well'))->{status}, 200, 'a file');

my $hash = $t->get('/api/models/me/m/tree/main')->json()->[0]{xetHash};

# the bucket gets a file of the repo

is(batch({ type => 'copyFile', path => 'ok', xetHash => $hash, mtime => 0,
	sourceRepoType => 'model', sourceRepoId => 'me/m' })->{status}, 200,
	'one in a bucket');

# --------------------------------------------------------------------------
# paths, and the component that the error names

my @unsafe = (
	[ '.git/config', '.git' ], [ '.git', '.git' ],
	[ 'a/.GIT/hooks/post-checkout', '.GIT' ], [ '.git./config', '.git.' ],
	[ '.git /config', '.git ' ], [ 'GIT~1/config', 'GIT~1' ],
	[ '.git::$INDEX_ALLOCATION/config', '.git::$INDEX_ALLOCATION' ],
	[ ".g\x{200c}it/config", ".g\x{200c}it" ],
	[ "\x{feff}.git/config", "\x{feff}.git" ],
	[ '.cache/huggingface/download/ok.metadata', '.cache' ],
	[ 'd/.Cache/x', '.Cache' ], [ 'C:x.txt', 'C:x.txt' ],
	[ '..\\..\\x.txt', '..\\..\\x.txt' ], [ 'a\\b', 'a\\b' ],
	[ 'con', 'con' ], [ 'a/NUL.txt', 'NUL.txt' ],
	[ 'Com1.bin', 'Com1.bin' ],
	[ 'a.', 'a.' ], [ 'a /b', 'a ' ], [ 'x::$DATA', 'x::$DATA' ],
	[ "a\x{9b}31m", "a\x{9b}31m" ]
);

my @safe = ('.gitattributes', '.gitmodules', '.github/workflows/ci.yml',
	'a b#%+&=?.txt', "\x{6a21}\x{578b}/\x{1f917}.bin",
	'auxiliary/console.py',
	'2023-07-18T12:33:18/details|arc:challenge|25.parquet',
	'<|end|>*"x".txt', '...a');

for my $case (@unsafe) {
	my ($path, $part) = @$case;
	my $name = $chars->allow_nonref()->encode($path);
	my $oid = sha256_hex('all is well');

	my %routes = (
		'a file in a commit' => commit(inline('good', 'x'),
			inline($path, 'x')),
		'an LFS file' => commit(inline('good', 'x'),
			{ key => 'lfsFile', value => { path => $path,
			algo => 'sha256', oid => $oid, size => 11 } }),
		'a copy' => commit(inline('good', 'x'),
			{ key => 'copyFile', value => { path => $path,
			srcPath => 'ok' } }),
		'a repo with files' => post('/api/repos/create', { name => 'x',
			files => [ map { inline($_, 'x')->{value} } 'good',
				$path ] }),
		'preupload' => post('/api/models/me/m/preupload/main',
			{ files => [ { path => 'good', size => 1 },
				{ path => $path, size => 1 } ] }),
		'a batch' => batch({ type => 'addFile', path => $path,
			xetHash => $hash, mtime => 0 }),
		'a copy to a bucket' => batch({ type => 'copyFile',
			path => $path, xetHash => $hash, mtime => 0,
			sourceRepoType => 'model', sourceRepoId => 'me/m' })
	);

	for my $route (sort keys %routes) {
		my $r = $routes{$route};
		my $body = eval { $json->decode($r->{body}) } // {};

		is("$r->{status} " . ($body->{details}{code} // ''),
			'400 unsafe_path', "$route: $name")
			or diag($r->summary());

		# logs contain no characters that terminals interpret or hide

		my $shown = $part =~ s/\x{9b}/??/r
			=~ s/[\x{200c}\x{feff}]/???/r;

		like($body->{error} // '', qr/must not contain "\Q$shown\E": /,
			"$route: $name: the part, and why");
	}
}

is($t->get('/api/models/me/m/commits/main')->json()->[0]{title}, 'a file',
	'nothing was committed');
is($t->get('/api/models/me/x')->{status}, 404, 'no repo was made');
is($t->sql('SELECT count(*) FROM xet.hub_paths WHERE path <> \'ok\''), 0,
	'no path was written');

is(commit(map { inline($_, 'safe') } @safe)->{status}, 200,
	'similar safe paths are accepted');

for my $path (@safe) {
	my $r = $t->get('/me/m/resolve/main/' . escape($path));

	is($r->{body}, 'safe', 'read: ' . escape($path));
}

is(batch(map { { type => 'copyFile', path => $_, xetHash => $hash, mtime => 0,
	sourceRepoType => 'model', sourceRepoId => 'me/m' } } @safe)->{status},
	200, 'and in a bucket');

# --------------------------------------------------------------------------
# such paths are inserted into the database, as if an older version had allowed
# them

# without ".git": the database cannot have a file and a folder of the same name

my @stored = grep { $_->[0] ne '.git' } @unsafe;

for my $case (@stored) {
	my $bytes = $case->[0];

	utf8::encode($bytes);

	my $text = "convert_from('\\x" . unpack('H*', $bytes) . "', 'UTF8')";

	for my $repo (1, 2) {
		$t->sql("INSERT INTO xet.hub_paths (repo_id, line, path,"
			. ' since, folder, hash, size, sha256, made, mtime)'
			. " SELECT repo_id, line, $text, since,"
			. " xet.hub_folder($text), hash, size, sha256, made,"
			. " mtime FROM xet.hub_paths WHERE repo_id = $repo AND"
			. " path = 'ok'");
		$t->sql('INSERT INTO xet.hub_paths (repo_id, line, path,'
			. ' since, folder, made) SELECT repo_id, line, a,'
			. ' since, xet.hub_folder(a), made FROM xet.hub_paths,'
			. " xet.hub_above($text) AS a WHERE repo_id = $repo AND"
			. " path = 'ok' ON CONFLICT DO NOTHING");
	}
}

for my $case (@stored) {
	my $path = $case->[0];
	my $name = escape($path);

	# characters that nginx takes for a dot or for the end of a path are
	# escaped

	for my $uri ("/me/m/resolve/main/$name", "/me/m/raw/main/$name",
		"/buckets/me/b/resolve/$name")
	{
		my $r = $t->get($uri);

		is($r->{status} . ' ' . $r->header_value('X-Error-Code'),
			'404 EntryNotFound', "stored: $uri is not served");
	}

	is(post($_, { paths => [ $path ] })->{body}, '[]',
		"stored: $name: not in $_")
		for '/api/models/me/m/paths-info/main',
		'/api/buckets/me/b/paths-info';
}

for my $uri ('/api/models/me/m/tree/main', '/api/buckets/me/b/tree') {
	my %listed = map { $_->{path} => 1 }
		@{ $t->get("$uri?recursive=true")->json() };

	is(join(' ', map { escape($_) } grep { $listed{$_} }
		map { $_->[0] } @stored), '', "stored: not in $uri");
	is($listed{ok}, 1, "the rest is in $uri");
}

is(commit({ key => 'copyFile', value => { path => 'config.txt',
	srcPath => '.git/config' } })->{status}, 200, 'stored: copied away');
is($t->get('/me/m/resolve/main/config.txt')->{body}, 'all is well',
	'stored: to a name that is one');

my $r = run('get', 'me/m', '-o', 'some');

is($r->{code}, 0, 'xet get: succeeds') or diag($r->{err});
is(slurp("$dir/some/config.txt"), 'all is well', 'xet get: the rest');
is(slurp("$dir/some/$_"), 'safe', "xet get: $_")
	for '.gitattributes', '2023-07-18T12:33:18/details|arc:challenge|25'
	. '.parquet';
is(scalar(grep { -e "$dir/some/$_" } '.git', '.cache', 'a/.GIT', 'con',
	'a ', 'a.', 'a\\b', 'C:x.txt'), 0, 'xet get: none of these');

is(run('get', 'me/m', '-o', 'x', '--names', 'any')->{code}, 2,
	'any names are for manifests');
is(run('get', 'me/m', '-o', 'x', '--names', 'none')->{code}, 2,
	'there are three ways');

# put and import skip such files

mkdir("$dir/in");
mkdir("$dir/in/$_") for '.git', 'sub', 'sub/.GIT';
spew("$dir/in/$_", 'put') for 'fine', '.git/config', 'sub/.GIT/config',
	'aux.txt', 'a\\b';

for my $verb ('put', 'import') {
	$r = run($verb, $verb eq 'put' ? '-r' : (), 'in', "me/$verb");

	isnt($r->{code}, 0, "xet $verb: fails");
	like($r->{err}, qr/skipped: "@{[ shown($_) ]}"/,
		"xet $verb: $_ is left out")
		for '.GIT', 'aux.txt', 'a\\b';
	is($t->get("/me/$verb/resolve/main/fine")->{body}, 'put',
		"xet $verb: the rest is there");
	is(join(' ', map { $_->{path} } @{ $t->get("/api/models/me/$verb/tree"
		. '/main?recursive=true')->json() }), 'fine',
		"xet $verb: and nothing else");
}

# an attacker's manifest

my $manifest = join('', map { $json->encode($_) . "\n" }
	{ file => '.git/config', hash => $hash, size => 11 },
	{ file => 'fine', hash => $hash, size => 11 },
	{ folder => 'sub/.git' });

spew("$dir/manifest", $manifest);

my @get = ('get', '-r', 'manifest');

is(run(@get, '-o', 'm1')->{code}, 1, 'a manifest: refused');
ok(!-e "$dir/m1/.git" && !-e "$dir/m1/sub", 'a manifest: not written');
is(run(@get, '-o', 'm2', '--names', 'skip')->{code}, 0, 'a manifest: skip');
ok(!-e "$dir/m2/.git" && -e "$dir/m2/fine" && !-e "$dir/m2/sub",
	'a manifest: the rest');
is(run(@get, '-o', 'm3', '--names', 'any')->{code}, 0, 'a manifest: any');
is(slurp("$dir/m3/.git/config"), 'all is well', 'a manifest of his own');

# stored unsafe paths can be deleted

for my $case (@stored) {
	my $name = escape($case->[0]);

	is(commit({ key => 'deletedFile', value => { path => $case->[0] } })
		->{status}, 200, "stored: $name is deleted");
	is(batch({ type => 'deleteFile', path => $case->[0] })->{status}, 200,
		"stored: $name is deleted, of a bucket");
}

is(run('verify', 'me/m')->{code}, 0, 'xet verify: all is well');
is(run('get', 'me/m', '-o', 'all')->{code}, 0, 'xet get: all of it');

$t->stop();

done_testing();

# --------------------------------------------------------------------------

sub post {
	my ($uri, $body) = @_;

	return $t->post($uri, \$json->encode($body),
		{ 'Content-Type' => 'application/json' });
}

sub commit {
	my (@ops) = @_;

	return $t->post('/api/models/me/m/commit/main', \join('',
		map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 'a file' } }, @ops),
		{ 'Content-Type' => 'application/x-ndjson' });
}

sub batch {
	my (@ops) = @_;

	return $t->post('/api/buckets/me/b/batch', \join('',
		map { $json->encode($_) . "\n" } @ops),
		{ 'Content-Type' => 'application/x-ndjson' });
}

sub inline {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64', content => encode_base64($data, '') } };
}

# Returns a path as xet prints it.

sub shown { return quotemeta($_[0] =~ s/\\/\\x5c/gr) }

sub escape {
	my ($text) = @_;

	utf8::encode($text);

	return $text =~ s/([^\w\/.-])/sprintf('%%%02X', ord($1))/egr;
}

sub run {
	my ($verb, @args) = @_;

	return xet($t, { dir => $dir, env => { HF_ENDPOINT => $t->url('') } },
		$verb, ($verb =~ /^(?:get|put|import)\z/ ? '-q' : ()), @args);
}

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The administrative commands: xet ls, repo, rm, token, url and migrate, and
# xet info for data on a server.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ build_dir root slurp spew /;

use Digest::SHA qw/ sha256_hex /;
use File::Copy qw/ copy /;
use File::Temp qw/ tempdir /;

my $t = Test::Xet->new(workers => 1, log => 'info',
	http => 'xet_token_key %%DIR%%/token.key; '
		. 'xet_token_key %%DIR%%/private.pem;',
	locations => <<'EOC');
location /api/ {
            xet_api;
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        location /store/ {
            xet_api;
            xet_api_base /store;
            xet_auth off;
        }

        location /checked/ {
            xet_api;
            xet_api_base /checked;
            xet_auth token;
            xet_access store;
            xet_token_issuer us;
            xet_token_audience them;
        }

        location /xorbs/ {
            %%DATA%%
        }

        location /login {
            auth_basic "who";
            auth_basic_user_file %%DIR%%/users;
            xet_token;
            xet_token_scope write;
            xet_token_repo a/a;
        }
EOC

my $dir = tempdir(CLEANUP => 1);
my $key = $t->dir() . '/token.key';

spew($key, "# a comment\n\ntoken:t1:" . 'ab' x 32 . "\n");
spew($t->dir() . '/users', "me:{PLAIN}secret\n");
chmod(0600, $key);
chmod(0644, $t->dir() . '/users');

system('openssl genpkey -algorithm ed25519 -out ' . $t->dir()
	. '/private.pem 2> /dev/null') == 0 or die;
chmod(0600, $t->dir() . '/private.pem');

$t->run();

my %pg = (env => { XET_POSTGRES => $t->conninfo() });

# --------------------------------------------------------------------------
# token: the server accepts the tokens that "xet token" mints

my $r = xet($t, 'token', '--key', $key, '--scope', 'write', '--repo', 'a/a',
	'--subject', 'me', '--lifetime', '5m', '--json');

is($r->{code}, 0, 'token') or diag($r->{err});
cmp_ok(abs($r->{json}[0]{expires} - time() - 300), '<', 30, 'its lifetime');

my %token = (a => $r->{json}[0]{token}, b => mint('--repo', 'b/b', '--scope',
	'write'), none => mint(), gone => mint('--repo', 'a/a', '--scope',
	'delete'), other => mint('--repo', 'b/b', '--scope', 'delete'),
	d => mint('--repo', 'd/d', '--scope', 'delete'));

spew("$dir/file", mix(1, 300000));

$r = with('a', 'put', '--json', "$dir/file");
is($r->{code}, 0, 'put with it') or diag($r->{err});

my $hash = $r->{json}[0]{hash};

is(with('a', 'get', '-o', "$dir/out", $hash)->{code}, 0, 'its repo reads');
is(with('b', 'get', '-o', "$dir/out", $hash)->{code}, 1, 'others do not');
is(with('none', 'put', "$dir/file")->{code}, 4, 'no scope to write');

like("hf_$token{a}", qr/\Ahf_[A-Za-z0-9]{34,253}\z/,
	'a form that all clients send');
like($token{hf} = mint('--hf', '--repo', 'a/a'),
	qr/\Ahf_xet1[A-Za-z0-9]{30,249}\z/, '--hf');
is(with('hf', 'get', '-o', "$dir/out", $hash)->{code}, 0,
	'the API accepts the prefix');

my $long = xet(undef, 'token', '--key', $key, '--subject', 'x' x 200);

is($long->{code}, 0, 'a long subject');
like($long->{err}, qr/\Axet: token: the claims are too long for a compact /,
	'a long subject is reported');
like($long->{out}, qr/\A[\w-]+\.[\w-]+\.[\w-]+\n\z/, 'a long subject: JWT');

my $private = xet($t, 'token', '--key', $t->dir() . '/private.pem', '--repo',
	'a/a');

is($private->{code}, 0, 'a private key');
chomp($private = $private->{out});
is(xet($t, { env => { XET_TOKEN => $private } }, 'verify', $hash)->{code}, 0,
	'it is taken');

my $claims = mint('--issuer', 'us', '--audience', 'them');

is(xet(undef, { endpoint => $t->url('/checked'),
	env => { XET_TOKEN => $claims } }, 'get', '0' x 64, '-o', '-')->{code},
	0, 'issuer and audience');
is(xet(undef, { endpoint => $t->url('/checked'),
	env => { XET_TOKEN => $token{none} } }, 'get', '0' x 64, '-o', '-')
	->{code}, 4, 'without them');

spew("$dir/bad", "t1;abcd\n");

fails(2, qr/--key is required$/, 'token', 'token');
fails(3, qr/line 1: the key names no purpose; expected token:ID:HEX, /,
	'bad key', 'token', '--key', "$dir/bad");
fails(3, qr/No such file/, 'missing key', 'token', '--key', "$dir/none");
fails(2, qr/--scope must be read, write, delete or admin$/, 'scope', 'token',
	'--key', $key,
	'--scope', 'all');
fails(2, qr/--lifetime must be a time/, 'lifetime', 'token', '--key', $key,
	'--lifetime', '5x');
fails(2, qr/a claim is too long or not allowed$/, 'repo', 'token', '--key',
	$key, '--repo', 'a//b');

spew("$dir/.netrc", "machine 127.0.0.1 login me password secret\n");
chmod(0600, "$dir/.netrc");

$r = xet(undef, { env => { HOME => $dir } }, 'token', '--json', '--url',
	$t->url('/login'));
is($r->{code}, 0, 'token --url') or diag($r->{err});
like($r->{json}[0]{endpoint}, qr!^\Q@{[ $t->url('/api') ]}\E/e\d+$!,
	'the endpoint, with an epoch');
is(xet($t, { env => { XET_TOKEN => $r->{json}[0]{token} } }, 'verify', $hash)
	->{code}, 0, 'the token');
fails(4, qr/: 401$/, 'token --url, nobody', 'token', '--url',
	$t->url('/login'));

# --------------------------------------------------------------------------
# ls and repo

spew("$dir/other", mix(2, 100000));
my $other = with('b', 'put', '--json', "$dir/other")->{json}[0]{hash};

$r = xet(undef, { %pg }, 'ls', '--json');
is_deeply([ map { [ @{$_}{qw/ hash size sha256 /} ] } @{ $r->{json} } ],
	[ [ $hash, 300000, sha256_hex(slurp("$dir/file")) ],
	[ $other, 100000, sha256_hex(slurp("$dir/other")) ] ], 'ls');
like($r->{json}[0]{created}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 'when');
like(xet(undef, { %pg }, 'ls')->{out},
	qr/\A$hash +300000 \S+\n$other +100000 \S+\n\z/, 'ls as text');
is(xet(undef, { %pg }, 'ls', '--repo', 'b/b', '--json')->{json}[0]{hash},
	$other, 'ls --repo');
fails(1, qr/^xet: c\/c: no such repository$/, 'ls --repo', { %pg }, 'ls',
	'--repo', 'c/c');
fails(2, qr/for a Hub set --hub .* a database set --postgres or XET_POSTGRES$/,
	'neither a Hub nor a database', 'ls');

$r = repo('ls', '--json');
is_deeply([ map { [ @{$_}{qw/ repo public files bytes /} ] } @{ $r->{json} } ],
	[ [ 'a/a', JSON::PP::false(), 1, 300000 ],
	[ 'b/b', JSON::PP::false(), 1, 100000 ] ], 'repo ls');
like(repo('ls')->{out}, qr/^private +1 +300000 a\/a$/m, 'repo ls as text');
like(repo('files', 'a/a')->{out}, qr/^$hash /, 'repo files');

is(repo('public', 'a/a')->{code}, 0, 'repo public');
is(with('b', 'verify', $hash)->{code}, 0, 'all read it');
is(repo('private', 'a/a')->{code}, 0, 'repo private');
is(with('b', 'verify', $hash)->{code}, 1, 'others do not');

is(repo('add', 'c/c')->{code}, 0, 'repo add');
is(repo('add', 'c/c')->{code}, 1, 'repo add again');
is(repo('add', 'c/c', $hash, $other)->{code}, 0, 'repo add of files');
is(repo('add', 'c/c', $hash)->{code}, 0, 'a file twice');
is(repo('ls', '--json')->{json}[2]{files}, 2, 'they are in it');
fails(1, qr/^xet: (ab){32}: no such file in the store$/, 'an unknown file',
	{ %pg }, 'repo', 'add', 'c/c', 'ab' x 32);
is(repo('rm', 'c/c', $hash)->{code}, 0, 'repo rm of a file');
is(repo('rm', 'c/c', $hash)->{code}, 1, 'which is not in it');
is(repo('files', 'c/c', '--json')->{json}[0]{hash}, $other, 'the other is');
is(repo('rm', 'c/c')->{code}, 0, 'repo rm');
is(repo('rm', 'c/c')->{code}, 1, 'repo rm again');
is(repo('public', 'c/c')->{code}, 1, 'it is gone');
is(repo('files', 'c/c')->{code}, 1, 'and its files');
is(repo('add', 'c/../c')->{code}, 2, 'no name');
is(repo('add', 'c/c', 'xyz')->{code}, 2, 'no hash');
is(repo('burn', 'c/c')->{code}, 2, 'no verb');
is(repo('public')->{code}, 2, 'no repo');

# PostgreSQL logs each administrative action, even one that changes nothing

my @acts = map { JSON::PP->new->utf8->decode($_) }
	$t->pg()->log() =~ /^.*LOG:  xet audit: (\{.*\})$/mg;

is_deeply([ map { join(' ', $_->{action}, $_->{repo}, $_->{done} ? 1 : 0,
	$_->{hash} // ()) } @acts ], [
	'repo.public a/a 1', 'repo.private a/a 1', 'repo.create c/c 1',
	'repo.create c/c 0', 'repo.create c/c 0', "repo.add c/c 1 $hash",
	"repo.add c/c 1 $other", 'repo.create c/c 0', "repo.add c/c 1 $hash",
	'repo.create c/c 0', 'repo.add c/c 0 ' . 'ab' x 32,
	"repo.remove c/c 1 $hash", "repo.remove c/c 0 $hash",
	'repo.delete c/c 1', 'repo.delete c/c 0', 'repo.public c/c 0'
], 'each action is logged') or diag(explain(\@acts));
like($acts[0]{time}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'when');
ok(length($acts[0]{role}), 'and by whom');

# --------------------------------------------------------------------------
# rm

my $store = { endpoint => $t->url('/store') };

is(with('other', 'rm', $hash)->{code}, 1, 'rm in another repo');
is(with('a', 'rm', $hash)->{code}, 4, 'rm without the scope for it');
is(with('none', 'rm', $hash)->{code}, 4, 'rm of a reader');

is(repo('add', 'd/d', $hash)->{code}, 0, 'a repo that has it, too');
is_deeply(with('gone', 'rm', '--json', $hash)->{json},
	[ { removed => $hash } ], 'rm');
is(with('gone', 'rm', $hash)->{code}, 1, 'rm again');
is(with('a', 'verify', $hash)->{code}, 1, 'it is gone');
fails(4, qr/the file is in use by repos/, 'rm in a store', $store, 'rm', $hash);

fails(2, qr/^xet: rm: expected either file hashes or --repo$/, 'rm of nothing',
	$store, 'rm');
fails(2, qr/expected either file hashes or --repo$/, 'rm of both', $store, 'rm',
	'--repo', 'd/d', $hash);
fails(2, qr/invalid repository name$/, 'rm of no name', $store, 'rm',
	'--repo', 'd/../d');
is(xet($t, $store, 'rm', '--repo', 'd/d')->{code}, 4,
	'rm of a repo, without repos');
is(with('d', 'rm', '--repo', 'a/a')->{code}, 4,
	'rm of a repo by the token of another one');
is(with('a', 'rm', '--repo', 'a/a')->{code}, 4, 'rm of a repo by a writer');
is(with('d', 'verify', $hash)->{code}, 0, 'nothing was deleted');
is_deeply(with('d', 'rm', '--json', '--repo', 'd/d')->{json},
	[ { removed_repo => 'd/d' } ], 'rm of a repo');
is(with('d', 'verify', $hash)->{code}, 1, 'its files are gone');
is(with('d', 'rm', '--repo', 'd/d')->{code}, 1, 'rm of a repo again');
is(repo('files', 'd/d')->{code}, 1, 'there is no such repo');

spew("$dir/stored", mix(7, 50000));
$r = xet($t, $store, 'put', '--json', "$dir/stored");
is($r->{code}, 0, 'put to the store') or diag($r->{err});
is(xet($t, $store, 'rm', $r->{json}[0]{hash})->{code}, 0, 'rm in a store');
is(xet($t, $store, 'verify', $r->{json}[0]{hash})->{code}, 1,
	'it is gone there');
is(xet($t, $store, 'put', "$dir/stored")->{code}, 0, 'put again');
is(xet($t, $store, 'verify', $r->{json}[0]{hash})->{code}, 0, 'it is back');
is(xet($t, $store, 'put', "$dir/file")->{code}, 0, 'and the file of before');

# --------------------------------------------------------------------------
# info

$r = xet($t, $store, 'info', '--json', $hash);
is($r->{json}[0]{kind}, 'remote file', 'info of a file');
is($r->{json}[0]{size}, 300000, 'its size');
is($r->{json}[0]{terms}, 1, 'its terms');

my ($xorb) = map { /([0-9a-f]{64})[.0-9a-f]*$/ } $t->files_in_store();
my ($name) = $t->copy($xorb) =~ m!([^/]+)\z!;
my $path = "$dir/$name";

spew($path, $t->copy_bytes($t->copy($xorb)));

$r = xet($t, $store, 'info', '--json', $xorb);

like($r->{json}[0]{kind}, qr/^remote (xorb|file)$/, 'info of a xorb');
fails(1, qr/not found: neither a local file nor/, 'info of nothing', $store,
	'info', 'ab' x 32);
$r = xet(undef, 'info', '--json', "$dir/file", $path);
is($r->{json}[0]{hash}, $hash, 'info of a file here');
is($r->{json}[0]{sha256}, sha256_hex(slurp("$dir/file")), 'its SHA-256');
is($r->{json}[1]{hash}, $xorb, 'info of a xorb here');
like(xet(undef, 'info', "$dir/file")->{out},
	qr/^\S+: file\n +hash +$hash\n +size +300000\n/, 'as text');

# --------------------------------------------------------------------------
# url

my $size = -s $path;

for my $range ([], [ '--range', '0-' . ($size - 1) ]) {
	my $url = xet(undef, 'url', '--key', $t->dir() . '/url.key', @$range,
		'--base', $t->url(''), $name);

	is($url->{code}, 0, "url @$range");
	like($url->{out}, qr!^http://127\.\S+/xorbs/default/!, 'what it is');

	my ($uri) = $url->{out} =~ m!(/xorbs/\S+)!;

	is($t->get($uri, { Range => 'bytes=0-' . ($size - 1) })->{body},
		slurp($path), 'it works');
}

# HASH.COPY_ID is the file name of a copy; HASH alone means another file

for my $what ($xorb, $xorb . '.' . '0' x 7 . '1') {
	my $url = xet(undef, 'url', '--key', $t->dir() . '/url.key', $what);

	is($url->{code}, 0, 'url of a copy that is not there');
	is($t->get($url->{out} =~ s/\n//r)->{status}, 404,
		'is signed, and 404');
}

for my $what ("$xorb.0000000A", "$xorb.00000000", "$xorb.1", uc($xorb), 'x')
{
	fails(2, qr/is not HASH\.COPY_ID, the file name of a copy/,
		"url of $what", 'url', '--key', $t->dir() . '/url.key', $what);
}

like(xet(undef, 'help', 'url')->{out},
	qr/^usage: xet url \[OPTION\.\.\.\] HASH\.COPY_ID$/m,
	'which the help says');

$r = xet(undef, 'url', '--json', '--lifetime', '2h', '--key',
	$t->dir() . '/url.key', $name);
cmp_ok(abs($r->{json}[0]{expires} - time() - 7200), '<', 30, 'url: lifetime');
like($r->{json}[0]{url}, qr!^/xorbs/!, 'url: no base');
fails(2, qr/invalid range; expected A-B/, 'url', 'url', '--key',
	$t->dir() . '/url.key', '--range', '7-', $xorb);
fails(2, qr/the ranges overlap/, 'url', 'url', '--key',
	$t->dir() . '/url.key', '--range', '5-9,0-6', $xorb);
fails(3, qr/line 1: the key is malformed; expected url:ID/, 'url', 'url',
	'--key', key_file(), $xorb);
fails(3, qr/line 3: the key is of purpose "token"; expected .* "url"$/, 'url',
	'url', '--key', $key, $xorb);
fails(3, qr/line 1: the key is of purpose "url"; expected .* "token"$/,
	'token', 'token', '--key', $t->dir() . '/url.key');

# --------------------------------------------------------------------------
# migrate

my $conninfo = $t->conninfo();
my ($owner) = $conninfo =~ /user=(\S+)/;

$t->sql("create database empty owner $owner");

$conninfo =~ s/dbname=\S+/dbname=empty/ or die $conninfo;

my %empty = (env => { XET_POSTGRES => $conninfo });

$r = xet(undef, { %empty }, 'migrate', '--json', '--sql', build_dir() . '/sql');
is($r->{code}, 0, 'migrate') or diag($r->{err});
is($r->{json}[0]{applied}, '0001_schema.sql', 'the first one');
is($r->{json}[-1]{applied}, 'functions.sql', 'functions are last');

is(xet(undef, { %empty }, 'migrate', '--sql', build_dir() . '/sql')->{out}, '',
	'nothing more to do');
is(xet(undef, { %empty }, 'ls')->{code}, 0, 'the functions are there');

mkdir("$dir/sql");
copy($_, "$dir/sql") or die for glob(build_dir() . '/sql/*.sql');
append("$dir/sql/functions.sql", "-- more\n");
is(xet(undef, { %empty }, 'migrate', '--sql', "$dir/sql")->{out},
	"functions.sql\n", 'changed functions');

append("$dir/sql/0001_schema.sql", "-- more\n");
fails(1, qr/^xet: 0001_schema.sql: was changed after/, 'migrate',
	{ %empty }, 'migrate', '--sql', "$dir/sql");
copy(build_dir() . '/sql/0001_schema.sql', "$dir/sql") or die;

spew("$dir/sql/9001_bad.sql", "create table public.half (i int);\nselect 1/0;");
$r = xet(undef, { %empty }, 'migrate', '--sql', "$dir/sql");
is($r->{code}, 3, 'one that fails');
like($r->{err}, qr/division by zero\n.*9001_bad.sql: was not applied\n/,
	'what it says');

spew("$dir/sql/9001_bad.sql", "create table public.half (i int);\n"
	. "copy public.half from stdin;\n");
$r = xet(undef, { %empty, timeout => 30 }, 'migrate', '--sql', "$dir/sql");
is($r->{code}, 3, 'one that waits for lines');
like($r->{err}, qr/COPY from or to .*\n.*9001_bad.sql: was not applied\n/,
	'what it says');

spew("$dir/sql/9001_bad.sql", "create table public.half (i int);\n");
is(xet(undef, { %empty }, 'migrate', '--sql', "$dir/sql")->{out},
	"9001_bad.sql\n", 'it had left nothing');

# an older release changes neither a newer database nor the functions in it

my $functions = "select sha256 from xet.migrations where version = 0";
my $sum = $t->sql($functions, db => 'empty');

fails(1, qr/^xet: 9001_bad.sql: is applied, but unknown to this version/,
	'migrate', { %empty }, 'migrate', '--sql', build_dir() . '/sql');
is($t->sql($functions, db => 'empty'), $sum, 'the functions are not older');

spew("$dir/sql/9001_again.sql", "select 1;\n");
fails(3, qr/number is zero or used twice$/, 'migrate', { %empty }, 'migrate',
	'--sql', "$dir/sql");
fails(3, qr/contains no migrations$/, 'migrate', { %empty },
	'migrate', '--sql', root() . '/conf');
fails(3, qr/No such file/, 'migrate', { %empty }, 'migrate', '--sql',
	"$dir/none");

# --------------------------------------------------------------------------

$t->allow(qr/password mismatch|no user/);
$t->done();

# --------------------------------------------------------------------------

sub mint {
	my $result = xet(undef, 'token', '--key', $key, @_);

	chomp($result->{out});

	return $result->{out};
}

sub with {
	my ($who, @args) = @_;

	return xet($t, { env => { XET_TOKEN => $token{$who} } }, @args);
}

sub repo { return xet(undef, { %pg }, 'repo', @_) }

sub fails {
	my ($code, $line, $name, @args) = @_;

	my %o = ref $args[0] ? %{ shift @args } : ();
	my $result = xet(undef, { %o }, @args);

	is($result->{code}, $code, "$name: exit code") or diag($result->{err});
	like($result->{err}, $line, "$name: what it says");
	is($result->{err} =~ tr/\n//, 1, "$name: one line");
}

sub key_file {
	spew("$dir/long", 'url:' . 'k' x 17 . ':' . 'ab' x 32 . "\n");

	return "$dir/long";
}

sub append {
	my ($file, $text) = @_;

	spew($file, slurp($file) . $text);
}

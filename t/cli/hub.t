#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet with a Hub: folders are uploaded by name and downloaded; known data is not
# resent, interrupted runs are resumed, and a token is sent only to its own
# server.  Hub responses cannot make xet write outside the target folder.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ build_dir run_command slurp spew wait_for /;
use Test::Xet::Real qw/ sha256_file /;

use Digest::SHA qw/ sha256_hex /;
use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;
use JSON::PP ();

my $mib = 1048576;

# A Hub without tokens, a Hub with tokens for the same repos, and a Hub that
# returns responses written by the test.

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 600,
	http => Test::Xet::Token::token_directive()
		. "\n" . server(8081, 'token', '5s') . "\n" . liar(8082)
		. "\n" . server(8083, 'token', '50s'),
	locations => 'xet_hub_expose on; ' . hub('off', '1h'));

sub hub {
	my ($auth, $lifetime) = @_;

	return <<"EOC";
location / {
            xet_hub on;
            xet_auth $auth;
            xet_hub_owners @{[ $auth eq 'off' ? '*' : 'none' ]};
            xet_token_lifetime $lifetime;
            xet_api_base /cas;
            client_max_body_size 200m;
        }

        location /cas/ {
            xet_api;
            xet_api_base /cas;
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        location ~ /xet-write-token/ {
            if (-f %%DIR%%/dry) {
                return 403;
            }

            xet_hub on;
            xet_auth $auth;
            xet_token_lifetime $lifetime;
            xet_api_base /cas;
        }

        location ~ ^/cas(?:/e\\d+)?/v1/shards\$ {
            if (-f %%DIR%%/held) {
                return 503;
            }

            xet_api;
            xet_api_base /cas;
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        location /xorbs/ {
            if (-f %%DIR%%/slow) {
                set \$limit_rate 1m;
            }

            %%DATA%%
        }
EOC
}

sub server {
	my ($port, $auth, $lifetime) = @_;

	# the log has only the end of a token, which identifies the token but
	# gives no access

	return ($port == 8081 ? "map \$http_authorization \$sent {\n"
		. "        '~(?<end>.{12})\$' \$end;\n    }\n"
		. "    log_format hub '\$server_port"
		. " \$request_method \$uri \$status \$sent';\n"
		. "    access_log %%DIR%%/hub.log hub;\n" : '')
		. "    server {\n        listen 127.0.0.1:%%PORT_$port%%;\n"
		. '        ' . hub($auth, $lifetime) . '    }';
}

sub liar {
	my ($port) = @_;

	return <<"EOC";
map \$args \$link {
        default      "";
        ~cursor=2    "";
        include      %%DIR%%/lies/link;
    }

    server {
        listen 127.0.0.1:%%PORT_$port%%;
        default_type application/json;
        root %%DIR%%/lies;

        location ~ ^/api/models/(?:me/m|x/src)/(revision|tree|xet-read-token)/ {
            add_header Link \$link;
            try_files /\$1\$arg_cursor =404;
        }

        location ~ ^/api/models/me/m/paths-info/ {
            error_page 405 =200 /paths;
            return 405;
        }

        location = /paths {
        }

        location /api/models/me/refused/ {
            add_header X-Error-Message "not \\\\ for \x1b[1m you" always;
            add_header X-Error-Code "Refused" always;
            return 403 '{"error":"this text is not shown"}';
        }
    }
EOC
}

mkdir($t->dir() . '/lies');
spew($t->dir() . '/lies/link', '');
$t->token_key();
$t->run();

my $dir = tempdir(CLEANUP => 1);
my $json = JSON::PP->new()->canonical();

# --------------------------------------------------------------------------
# a folder with odd file names, uploaded and downloaded

my %files = (empty => '', 'a/b/empty' => '', '.gitattributes' => 'x',
	"\xc3\xa4 b#?%&+\"'" => 'odd', '%2e%2e' => 'dots', '-o' => 'option',
	'a|b:c' => 'colon', '..x' => 'two', 'a/~/@x:y' => 'more',
	'.cached/x' => 'mine', 'a/same' => mix(3, 3_000_000),
	'b/same' => mix(3, 3_000_000), 'large' => random_bytes(4, 500_000));

$files{"many/$_"} = "file $_\n" x $_ for 1 .. 290;

put_file("in/$_", $files{$_}) for keys %files;
make_path("$dir/in/nothing/in/it");
system(build_dir() . '/tools/xet_make random 9 ' . 80 * $mib
	. " > $dir/in/eighty") == 0 or die;

my $count = keys(%files) + 1;

spew($t->dir() . '/hub.log', '');

my $r = hub_xet('put', '--json', '-r', 'in', 'me/model', '-m', 'the first');
my $last = $r->{json}[-1];

is($r->{code}, 0, 'put') or diag($r->{err});
is($r->{err}, '', 'put: without a word');
is($last->{files}, $count, 'put: all files');
is(scalar(@{ $r->{json} }), $count + 1, 'put: all are reported');
is($last->{repo}, 'me/model', 'put: the repo');
is(requests(qr!POST /api/repos/create 200!), 1, 'put: which is made');
is(requests(qr!POST /api/\S+/commit/!), 1, 'put: one commit');
is($t->get('/api/models/me/model')->json()->{sha}, $last->{commit},
	'put: which is the last');
is($t->get('/api/models/me/model/commits/main')->json()->[0]{title},
	'the first', 'put: its message');

my ($entry) = grep { ($_->{file} // '') eq 'large' }
	@{ $r->{json} };

is($entry->{sha256}, sha256_hex($files{large}), 'put: SHA-256');

$r = hub_xet({ env => { XET_POSTGRES => $t->conninfo() } }, 'repo', 'ls');
like($r->{out}, qr!^public +\d+ +\d+ _hub/\d+ models/me/model$!m,
	'repo ls: what it is called');

$r = hub_xet('get', '--json', 'me/model');
is($r->{code}, 0, 'get') or diag($r->{err});
is(scalar(@{ $r->{json} }), $count, 'get: all files');
rmdir("$dir/in/$_") for 'nothing/in/it', 'nothing/in', 'nothing';
same('in', 'model', 'get: as they were');

$r = hub_xet('get', '--json', 'me/model');
is($r->{code}, 0, 'get again');
is_deeply([ grep { $_->{received_bytes} } @{ $r->{json} } ], [],
	'get again: nothing is fetched');

put_file('model/-o', 'other');
unlink("$dir/model/large");
$r = hub_xet('get', '--json', 'me/model');
is_deeply([ sort map { $_->{file} } grep { $_->{received_bytes} }
	@{ $r->{json} } ], [ '-o', 'large' ], 'get: what is another');
same('in', 'model', 'get: as they are');

# --------------------------------------------------------------------------
# known data is not resent

spew($t->dir() . '/hub.log', '');
$r = hub_xet('put', '--json', '-r', 'in', 'me/model');
is($r->{code}, 0, 'put again');
is_deeply($r->{json}, [ { repo => 'me/model', type => 'model', files => 0,
	unchanged => $count } ], 'put again: nothing');
is(requests(qr/POST \S+(?:xorbs|shards|commit)/), 0,
	'put again: nothing is sent');

put_file('in/-o', 'changed');
put_file('in/new', 'new');
put_file('in/empty', 'no more');
put_file('in/many/1', '');
$r = hub_xet('put', '--json', '-r', 'in', 'me/model');
is($r->{code}, 0, 'put of changes');
is_deeply([ map { $_->{file} // () } @{ $r->{json} } ],
	[ 'many/1', '-o', 'empty', 'new' ], 'put of changes: these alone');
is($r->{json}[-1]{unchanged}, $count - 3, 'put of changes: and no others');

my $changed = $r->{json}[-1]{commit};

# --------------------------------------------------------------------------
# single files, folders and ranges by name; then ls, info, verify and rm

is(hub_xet('put', 'in/-o', 'me/model/deep/er')->{code}, 0, 'put: one file');
is(hub_xet({ stdin => "$dir/in/new" }, 'put', '-', 'hf://me/model/deep/est')
	->{code}, 0, 'put: the standard input');
is(hub_xet('get', 'me/model/deep/er', '-o', '-')->{out}, 'changed',
	'get: to the standard output');
is(hub_xet('get', 'me/model/deep/est', '-o', '-')->{out}, 'new',
	'get: what came from a pipe');
is(hub_xet('get', 'me/model/-o', '-o', '-', '--revision', $last->{commit})
	->{out}, 'option', 'get: of another commit');
is(hub_xet('get', 'me/model/large', '--range', '10-19', '-o', '-')->{out},
	substr($files{large}, 10, 10), 'get: a range');
is(hub_xet('get', 'me/model/a/b/empty')->{code}, 0, 'get: no bytes');
is(-s "$dir/empty", 0, 'get: are a file');
is(hub_xet('get', 'me/model/a', '-o', 'only')->{code}, 0, 'get: a folder');
same('in/a', 'only', 'get: what is in it');

for my $name ('me/model/gone', 'me/gone') {
	isnt(hub_xet('get', $name)->{code}, 0, "get: $name: is not there");
	ok(!-e "$dir/gone", "get: $name: and leaves nothing here");
}

$r = hub_xet('ls', '--json', 'me/model/deep');
is_deeply([ map { "$_->{file} $_->{size} $_->{sha256}" } @{ $r->{json} } ],
	[ 'deep/er 7 ' . sha256_hex('changed'), 'deep/est 3 '
	. sha256_hex('new') ], 'ls: a folder');
like($r->{json}[0]{date}, qr/^\d{4}-\d\d-\d\dT/, 'ls: with dates');
is(scalar(grep { $_->{file} } @{ hub_xet('ls', '-r', '--json', 'me/model')
	->{json} }), $count + 3, 'ls: all of it');
like(hub_xet('ls', 'me/model/deep/er')->{out}, qr/^ +7 \S+ +deep\/er\n\z/,
	'ls: a file');

my $info = hub_xet('info', '--json', 'me/model/large')->{json};

is($info->[0]{sha256}, sha256_hex($files{large}), 'info');
is($info->[1]{hash}, $entry->{hash}, 'info: and how it is stored');

$r = hub_xet({ endpoint => '' }, 'verify', '--json', 'me/model',
	'me/model/deep/er',
	$entry->{hash});
is($r->{code}, 2, 'verify: a hash needs an endpoint');
is(scalar(@{ $r->{json} }), $count + 4, 'verify: all files of a name');
is(hub_xet('verify', 'me/model/large', 'me/model/no')->{code}, 1,
	'verify: a name that is not there');

is(hub_xet('rm', 'me/model/deep/er')->{code}, 0, 'rm');
is(hub_xet('rm', 'me/model/deep/er')->{code}, 1, 'rm: what is not there');
is(hub_xet('rm', 'me/model/deep')->{code}, 1, 'rm: a folder is no file');
is(hub_xet('rm', '-r', 'me/model/deep')->{code}, 0, 'rm -r');
is(hub_xet('ls', 'me/model/deep')->{code}, 1, 'rm -r: nothing is left');

# --------------------------------------------------------------------------
# empty files, and files that only seem empty

put_file("no/$_", '') for 1 .. 10_001;
spew($t->dir() . '/hub.log', '');
is(hub_xet('put', '-r', 'no', 'buckets/no/no')->{code}, 0, 'no bytes: put');
is(requests(qr!POST /api/buckets/no/no/batch 200!), 2,
	'no bytes: 10,000 in a batch');

my $system = '/proc/version';

is(hub_xet('put', $system, 'me/model/system')->{code}, 0,
	'a file of the system');
is(hub_xet('get', 'me/model/system', '-o', '-')->{out}, slurp($system),
	'a file of the system: is read');
put_file('in/none', '');
is(hub_xet('put', 'in/none', 'me/model/system')->{code}, 0,
	'a file of the system: is nothing now');
is(hub_xet('put', $system, 'me/model/system')->{code}, 0,
	'a file of the system: again');
is(hub_xet('get', 'me/model/system', '-o', '-')->{out}, slurp($system),
	'a file of the system: is not nothing');
hub_xet('rm', 'me/model/system');
unlink("$dir/in/none");

# --------------------------------------------------------------------------
# other repo types, and branches

is(hub_xet('put', 'in/new', 'datasets/me/d/x', '--revision', 'dev/x')
	->{code}, 0, 'put: a branch of a dataset');
is(hub_xet('ls', 'datasets/me/d')->{out}, '', 'put: not the main one');
is(hub_xet('get', '-o', '-', 'me/d/x', '--type', 'dataset', '--revision',
	'dev/x')->{out}, 'new', 'get: of the branch');

for my $n (0, 1) {
	$r = hub_xet('put', '--json', '-r', 'in/a', 'buckets/me/b/up');
	is($r->{code}, 0, "bucket: put $n") or diag($r->{err});
	is($r->{json}[-1]{unchanged}, $n ? 3 : 0, "bucket: put $n: unchanged");
}

is(hub_xet('get', 'buckets/me/b/up', '-o', 'bucket')->{code}, 0,
	'bucket: get');
same('in/a', 'bucket', 'bucket: as it was');
is(hub_xet('rm', '-r', 'buckets/me/b/up/b')->{code}, 0, 'bucket: rm -r');
is_deeply([ map { $_->{file} } @{ hub_xet('ls', '-r', '--json',
	'buckets/me/b')->{json} } ], [ 'up/same', 'up/~/@x:y' ],
	'bucket: what is left');
is(join(' ', map { /(\S+)$/ } split(/\n/, hub_xet('ls', 'me')->{out})),
	'me/model datasets/me/d buckets/me/b', 'ls: of an owner');

# two concurrent puts: the files of both are committed

put_file("pair$_/file$_", "of $_") for 1, 2;

my @pair = map { xet_start($t, { hub_options() }, 'put', '-r', "pair$_",
	'me/pair') } 1, 2;

is(xet_wait($_)->{code}, 0, 'two at once') for @pair;
is_deeply([ sort map { $_->{file} } @{ hub_xet('ls', '--json', 'me/pair')
	->{json} } ], [ 'file1', 'file2' ], 'two at once: both are there');

# --------------------------------------------------------------------------
# files that are never uploaded

put_file("odd/$_", 'x') for '.git/config', 'a/.git/x', 'b/.git',
	'.cache/huggingface/x', 'a/.cache/huggingface/x', 'kept', '.cache/y',
	'.gitignore', 'huggingface/x', "no\nname";
symlink('kept', "$dir/odd/link");

$r = hub_xet('put', '--json', '-r', 'odd', 'me/odd');
is($r->{code}, 3, 'left out: the exit status');
is_deeply([ sort map { $_->{file} // () } @{ $r->{json} } ],
	[ '.gitignore', 'huggingface/x', 'kept' ],
	'left out: the others are put');
is($r->{err}, "xet: link: skipped: symbolic link\n"
	. 'xet: .cache/y: skipped: ".cache" is a folder of clients of a'
	. " Hub\n"
	. "xet: no\\x0aname: skipped: not a valid path in a repository\n",
	'left out: the messages');

# --------------------------------------------------------------------------
# command lines

for my $bad ([ 'put', '-r', 'in', 'me' ], [ 'put', '-r', 'in', '../m' ],
	[ 'put', '-r', 'in', 'me/m/../x' ], [ 'put', 'in/new', 'hf://me/m' ],
	[ 'put', '-r', 'in', 'datasets/me/d', '--type', 'model' ],
	[ 'put', '-r', 'in', 'me/m', '--type', 'other' ],
	[ 'put', '-m', 'x', 'in/new' ], [ 'get', 'me/m.git' ],
	[ 'get', 'me/model', '--revision', 'a//b' ], [ 'ls', 'api/x' ],
	[ 'rm', 'me/model' ], [ 'rm', '-r' ], [ 'rm', 'me/model/a', 'me/x/b' ],
	[ 'ls', 'me', '--repo', 'x' ], [ 'ls', '-r' ], [ 'import', 'in' ],
	(map { my $verb = $_; map { [ $verb, '1' x 64, @$_ ],
		[ $verb, @$_, 'me/model/large', '1' x 64 ] }
		[ '--revision', 'main' ], [ '--type', 'bucket' ] }
		qw/ info verify /),
	[ 'rm', '1' x 64, '--type', 'model' ], [ 'info', 'in/new', '--type',
	'model' ], [ 'rm', '1' x 64, '--revision', 'main' ],
	[ 'rm', '1' x 64, '-m', 'x' ], [ 'rm', '--repo', 'x', '--type',
	'model' ], [ 'verify', '--store', '/none', '--type', 'model' ],
	[ 'get', '1' x 64, '--type', 'model' ],
	[ 'zt', 'ls', '1' x 64, '--type', 'model' ])
{
	$r = hub_xet(@$bad);
	is($r->{code}, 2, "@$bad");
	is($r->{err} =~ tr/\n//, 1, "@$bad: one line");
}

put_file('me/model/there', 'x');
like(hub_xet({ endpoint => '' }, 'put', 'in/new', 'me/model/there')->{err},
	qr/^xet: endpoint: set --endpoint/, 'a file that is there is no name');
is(hub_xet('put', 'in/new', 'hf://me/model/there')->{code}, 0,
	'but that is one');
hub_xet('rm', 'me/model/there');

$r = hub_xet('put', 'in/new', 'data/run/b.bin');
is($r->{code}, 1, 'a file that is not there makes no repo');
like($r->{err}, qr!^xet: data/run: no such repository; .* hf://!,
	'a missing file: the error');
$r = hub_xet('put', '--endpoint', $t->url('/cas'), 'in/new', 'me/model/b.bin');
is($r->{code}, 4, 'a file that is not there: not with --endpoint');
is($t->get('/api/models/data/run')->{status}, 404, 'no repo is there');
is(hub_xet('ls', 'me/model/b.bin')->{code}, 1, 'and no file');
is(hub_xet('put', 'in/new', 'hf://data/run/b.bin')->{code}, 0,
	'a repo with hf://');
is(hub_xet('put', '--hub', $t->url(''), 'in/new', 'data/hub/b.bin')->{code},
	0, 'a repo with --hub');

for my $bad ([ 2, '-r', 'in/a', 'me/checked', '--parallel', 99 ],
	[ 3, 'in/typo', 'hf://me/checked/x' ], [ 3, 'in', 'hf://me/checked/x' ],
	[ 3, '-r', 'in/typo', 'me/checked' ])
{
	my ($code, @args) = @$bad;

	is(hub_xet('put', @args)->{code}, $code, "put @args");
	is($t->get('/api/models/me/checked')->{status}, 404,
		"put @args: makes no repo");
}

is(xet($t, { dir => $dir }, 'get', 'me/model')->{err}, "xet: me/model: set"
	. " --hub or HF_ENDPOINT\n", 'no Hub');

# --------------------------------------------------------------------------
# permissions

my %token = map { $_ => token($_) } qw/ alice bob /;
my %end = map { $_ => substr($token{$_}, -12) } keys %token;

$r = token_xet('alice', 'put', '-r', 'in/a', 'alice/own');
is($r->{code}, 0, 'token: put') or diag($r->{err});
is(token_xet('alice', 'get', 'alice/own', '-o', 'p')->{code}, 0,
	'token: get');
same('in/a', 'p', 'token: as it was');

$r = token_xet('alice', 'put', '--json', 'in/new', 'hf://me/mine/x');
is($r->{code}, 0, 'token: who "me" is') or diag($r->{err});
is($r->{json}[-1]{repo}, 'alice/mine', 'token: the repo');
is(token_xet('bob', 'get', 'alice/mine/x', '-o', '-')->{out}, 'new',
	'token: and read by others');
is(join(' ', map { $_->{repo} } @{ token_xet('alice', 'ls', '--json', 'me')
	->{json} }), 'alice/mine alice/own', 'token: ls');

$r = token_xet('bob', 'put', 'in/new', 'alice/own/x');
is($r->{code}, 4, 'token: of another');
like($r->{err}, qr/: 403: You may read this repository, but not write/,
	'token: the reason');
is(token_xet('', 'ls', 'alice/own')->{code}, 4, 'token: none');
is(hub_xet({ env => { HF_ENDPOINT => $t->url('', 8081),
	HF_TOKEN => "hf_$token{alice}" } }, 'ls', 'alice/own')->{code}, 0,
	'token: that of HF_TOKEN');
is(hub_xet({ env => { HF_ENDPOINT => '', HF_TOKEN => $token{alice} } }, 'ls',
	'--hub', $t->url('', 8081), 'alice/own')->{code}, 4,
	'token: HF_TOKEN is for HF_ENDPOINT alone');

# two servers: xet sends each server only the token of that server

my @two = (HF_ENDPOINT => $t->url('', 8081), XET_ENDPOINT => $t->url('/api'));

spew($t->dir() . '/hub.log', '');
is(hub_xet({ env => { @two, XET_TOKEN => $token{alice} } }, 'ls',
	'alice/own')->{code}, 4, 'token: XET_TOKEN is for XET_ENDPOINT');
unlike($t->read_file('hub.log'), qr/\Q$end{alice}\E/,
	'token: and goes nowhere else');
is(hub_xet({ env => { @two, XET_ENDPOINT => $t->url('/api', 8081),
	XET_TOKEN => $token{alice} } }, 'ls', 'alice/own')->{code}, 0,
	'token: but to the same server');
is(hub_xet({ endpoint => '', env => { HF_ENDPOINT => $t->url('', 8081),
	HF_TOKEN => $token{alice}, XET_TOKEN => $token{bob} } }, 'put',
	'in/new', 'alice/own/hf')->{code}, 0, 'token: HF_TOKEN comes first');

put_file('tokens/alice', $token{alice});

for my $verb (qw/ verify info /) {
	for my $how ([ { @two }, '--token-file', "$dir/tokens/alice" ],
		[ { @two, XET_TOKEN => $token{alice} }, '--hub',
		$t->url('', 8081) ])
	{
		my ($env, @options) = @$how;

		$r = hub_xet({ env => $env }, $verb, @options,
			'alice/own/same', $entry->{hash});
		is($r->{code}, 2, "token: $verb: $options[0]: not for two");
		like($r->{err}, qr/^xet: token: is for one server/,
			"token: $verb: $options[0]: the error");
	}
}

hub_xet({ endpoint => '', env => { HF_ENDPOINT => $t->url('', 8081),
	XET_TOKEN => $token{alice} } }, 'get', 'alice/own', '-o', 'q');
like($t->read_file('hub.log'), qr/\Q$end{alice}\E/,
	'token: the Hub gets it');
unlike(join("\n", $t->read_file('hub.log') =~ m!^(\d+ \S+ /cas/.*)!mg),
	qr/\Q$end{alice}\E/, 'token: the contents get another one');

# a put renews its data token as long as it runs

my $asks = qr!GET /api/models/alice/own/xet-write-token!;

spew($t->dir() . '/hub.log', '');
spew($t->dir() . '/held', '');

my $run = xet_start($t, { hub_options(), endpoint => '', env => {
	HF_ENDPOINT => $t->url('', 8081), XET_TOKEN => $token{alice} } }, 'put',
	'--retries', 100, 'in/new', 'alice/own/renewed');

ok(wait_for(120, sub { requests($asks) >= 3 }), 'token: renewed');
unlink($t->dir() . '/held');
is(xet_wait($run)->{code}, 0, 'token: and used');

# a valid token stays in use if the server issues no new token

spew($t->dir() . '/hub.log', '');
spew($t->dir() . '/held', '');

$run = xet_start($t, { hub_options(), endpoint => '', env => {
	HF_ENDPOINT => $t->url('', 8083), XET_TOKEN => $token{alice} } }, 'put',
	'--retries', 100, 'in/many/2', 'alice/own/kept');

ok(wait_for(120, sub { requests(qr/POST \S+shards 503/) }),
	'token: a shard waits');
spew($t->dir() . '/dry', '');
ok(wait_for(120, sub { requests(qr/GET \S+-write-token\S+ 403/) }),
	'token: there is no other one');
unlink($t->dir() . '/held');
is(xet_wait($run)->{code}, 0, 'token: what there is is used');
unlink($t->dir() . '/dry');

# --------------------------------------------------------------------------
# interrupted runs

system(build_dir() . '/tools/xet_make random 11 ' . 200 * $mib
	. " > $dir/two") == 0 or die;
make_path("$dir/up");
rename("$dir/two", "$dir/up/two");

my @put = ('put', '--json', '--parallel', 1, '--retries', 100, '-r', 'up',
	'me/up');

spew($t->dir() . '/hub.log', '');
spew($t->dir() . '/held', '');

$run = xet_start($t, { hub_options() }, @put);

ok(wait_for(120, sub { requests(qr/POST \S+shards 503/) }),
	'broken off: before its shard');
kill('KILL', $run->{pid});
xet_wait($run);
unlink($t->dir() . '/held');

is($t->get('/api/models/me/up')->{status}, 200, 'broken off: a repo is there');
is(requests(qr/POST \S+commit/), 0, 'broken off: without a commit');

spew($t->dir() . '/hub.log', '');
$r = hub_xet(@put);
is($r->{code}, 0, 'resumed') or diag($r->{err});
is(requests(qr/POST \S+xorbs/), 0, 'resumed: no xorb is sent again');
is($r->{json}[-1]{files}, 1, 'resumed: the file is committed');

# an interrupted import of many repos: the next run resumes each repo separately

for my $name (qw/ one two /) {
	my $repo = "half/models--half--$name";

	put_file("$repo/refs/main", '01' x 20);
	make_path("$dir/$repo/blobs");
	put_file("$repo/snapshots/" . '01' x 20 . '/x',
		random_bytes(ord($name), 3_000_000));
}

sub import_half {
	my (@args) = @_;

	spew($t->dir() . '/hub.log', '');
	spew($t->dir() . '/held', '');

	my $half = xet_start($t, { hub_options() }, 'import', '--retries', 100,
		@args);

	ok(wait_for(120, sub { requests(qr/POST \S+shards 503/) }),
		"import: @args: before a shard");
	kill('KILL', $half->{pid});
	xet_wait($half);
	unlink($t->dir() . '/held');
	spew($t->dir() . '/hub.log', '');
}

is(hub_xet('import', 'half/models--half--one', 'half/one')->{code}, 0,
	'import: the first of two');
import_half('half');
$r = hub_xet('import', '--json', 'half');
is($r->{code}, 0, 'import: gone on with') or diag($r->{err});
is(join(' ', map { "$_->{repo} $_->{files}" } grep { $_->{repo} }
	@{ $r->{json} }), 'half/one 0 half/two 1', 'import: both of them');
is(requests(qr/POST \S+xorbs/), 0, 'import: no xorb is sent again');

# an import is interrupted, then started again with another repo, type or branch

my @half = ('half/models--half--two/snapshots/' . '01' x 20);

import_half(@half, 'other/one');

for my $to ([ 'other/two' ], [ 'other/one', '--type', 'dataset' ],
	[ 'other/one' ], [ 'other/one', '--revision', 'dev' ])
{
	spew($t->dir() . '/hub.log', '');
	$r = hub_xet('import', '--json', @half, @$to);
	is($r->{code}, 0, "import: to @$to") or diag($r->{err});
	is($r->{json}[-1]{files}, "@$to" =~ /dev/ ? 0 : 1,
		"import: to @$to: the file, if main has it not");
	is(hub_xet('get', "$to->[0]/x", '-o', '-', @$to[1 .. $#$to])->{out},
		random_bytes(ord('two'), 3_000_000),
		"import: to @$to: is right");
}

spew($t->dir() . '/slow', '');
$run = xet_start($t, { hub_options() }, 'get', '--json', '--parallel', 4,
	'me/up', '-o', 'down');
ok(wait_for(120, sub { (-s "$dir/down/two.xet-state" || 0) > 48 * 40 }),
	'get: some of it is there');
kill('TERM', $run->{pid});
$r = xet_wait($run);
is($r->{code}, 130, 'get: broken off');
like($r->{err}, qr/bytes are kept in two\.xet-part/, 'get: which is told');
unlink($t->dir() . '/slow');

$r = hub_xet('get', '--json', 'me/up', '-o', 'down');
is($r->{code}, 0, 'get: resumed');
cmp_ok($r->{json}[0]{received_bytes}, '<', 199 * $mib,
	'get: only the missing data');
is(sha256_file("$dir/down/two"), sha256_file("$dir/up/two"), 'get: is right');

# --------------------------------------------------------------------------
# a Hub with false responses

my $told = $t->get('/api/models/me/model/xet-read-token/main')->json();
my $oid = '01' x 20;
my $one = { type => 'file', path => 'one', size => 500_000,
	xetHash => $entry->{hash}, lfs => { oid => $entry->{sha256} } };
my $lied = 0;

lie([ $one ]);
is(lied()->{code}, 0, 'lies: none');
is(sha256_file("$dir/out$lied/one"), $entry->{sha256}, 'lies: none: bytes');

make_path("$dir/victims");
symlink("$dir/victims", "$dir/up-link");

for my $path ('../x', 'a/../../x', '/tmp/xet-victim', '', '.', '..', 'a//b',
	'a/', './a', "a\nb", "$dir/victims/x", [ 'a' ], undef, 'n' x 300)
{
	lie([ { %$one, path => $path } ]);
	refused(4, 'path ' . $json->allow_nonref()->encode($path));
}

for my $change ([ { lfs => { oid => 'ab' x 32 } }, 1 ],
	[ { size => 499_999 }, 1 ], [ { size => 500_001 }, 1 ],
	[ { size => 0 }, 0 ], [ { size => -1 }, 4 ], [ { size => 'x' }, 4 ],
	[ { xetHash => 'ab' x 32, lfs => undef }, 1 ],
	[ { xetHash => undef }, 1 ], [ { xetHash => 'x' }, 4 ],
	[ { path => 'x.xet-part' }, 1 ], [ { type => 'link' }, 4 ],
	[ { lfs => { oid => 'x' } }, 4 ])
{
	lie([ { %$one, %{ $change->[0] } } ]);
	refused($change->[1], $json->encode($change->[0]));
}

# a link in the target folder, a next page on another host, and a page whose
# next page is itself

lie([ { %$one, path => 'up/one' } ]);
$lied++;
make_path("$dir/out$lied");
symlink("$dir/victims", "$dir/out$lied/up");
is(lied()->{code}, 3, 'lies: a link on the way');
is_deeply([ glob("$dir/victims/*") ], [], 'lies: is not followed');

my $tree = 'http://127.0.0.1:1/elsewhere';

lie([ $one ], link => "<$tree?cursor=2>; rel=\"next\"",
	tree2 => [ { %$one, path => 'two' } ]);
is(lied()->{code}, 0, 'lies: a page of another place');
ok(-f "$dir/out$lied/two", 'lies: requested from the same server');

lie([ $one ], link => "<$tree?recursive=true>; rel=\"next\"");
refused(4, 'the same page for ever', 1);

lie([ $one ], link => "<$tree?cursor=3>; rel=\"next\"", tree3 => [],
	tree4 => [], map { ("link$_" => "<$tree?cursor=" . (7 - $_)
	. '>; rel="next"') } 3, 4);
refused(4, 'two pages for ever', 1);

for my $what ([ revision => [] ], [ revision => { id => '../../x',
	sha => $oid } ], [ revision => { id => 'me/m', sha => '../../x' } ],
	[ revision => { id => 'me/m' } ], [ revision => '' ],
	[ revision => '{' ], [ tree => {} ], [ tree => 'null' ],
	[ tree => '[' x 3000 ], [ tree => [ 1 ] ], [ tree => '' ],
	[ tree => '[' . '{},' x 600_000 . '1]' ],
	(map { [ 'xet-read-token' => { %$told, %$_ } ] } { casUrl => undef },
		{ casUrl => 'file:///etc/passwd' }, { casUrl => 'x' },
		{ accessToken => '' }, { accessToken => "a\r\nX: b" },
		{ casUrl => 'http://198.51.100.1/cas' }, { exp => 'x' }),
	[ 'xet-read-token' => '[]' ])
{
	lie([ $one ], @$what);
	refused(4, substr("$what->[0]: " . (ref $what->[1]
		? $json->encode($what->[1]) : $what->[1]), 0, 70));
}

put_file('src/one', 'mine');
lie([ $one ], revision => { id => 'x/src', sha => $oid });
$r = hub_xet({ lying() }, 'get', 'me/m', '--retries', 0);
is($r->{code}, 0, 'lies: another name');
is(slurp("$dir/src/one"), 'mine', 'lies: another name: leads nowhere else');
is(sha256_file("$dir/m/one"), $entry->{sha256}, 'lies: but where it should');

lie([ $one ], paths => [ { %$one, path => 'other' } ]);
$r = hub_xet({ lying() }, 'get', 'me/m/one', '-o', 'x1', '--retries', 0);
is($r->{code}, 4, 'lies: another path than requested');
is_deeply([ glob("$dir/x1/*") ], [], 'lies: is not taken for it');

lie([], paths => [ { %$one, path => 'other' } ]);

for my $verb (qw/ verify ls /) {
	$r = hub_xet({ lying() }, $verb, 'me/m/one', '--retries', 0);
	isnt($r->{code}, 0, "lies: $verb: another path");
	is($r->{out}, '', "lies: $verb: is not taken for it");
}

lie([ { %$one, lfs => { oid => 'ab' x 32 } }, { %$one, path => 'two' } ]);
$r = hub_xet({ lying() }, 'verify', '--json', 'me/m', '--retries', 0);
is($r->{code}, 1, 'lies: verify');
is_deeply([ map { $_->{file} } @{ $r->{json} } ], [ 'two' ],
	'lies: verify: continues');

lie([ $one ], paths => [ { %$one, lfs => { oid => 'ab' x 32 } } ]);
$r = hub_xet({ lying() }, 'get', 'me/m/one', '-o', 'x2', '--retries', 0);
is($r->{code}, 1, 'lies: another SHA-256');
is($r->{err}, "xet: x2: does not match the SHA-256 on the server; the data have"
	. " $entry->{sha256}\n", 'lies: the output');
ok(!-e "$dir/x2", 'lies: and has no name');
is(hub_xet({ lying() }, 'get', 'me/m/one', '-o', '-', '--retries', 0)
	->{code}, 1, 'lies: another SHA-256, to a pipe');

$r = hub_xet({ lying() }, 'ls', 'me/refused');
is($r->{code}, 4, 'refused');
like($r->{err}, qr/: 403 Refused: not \\x5c+ for \\x1b\[1m you\n\z/,
	'refused: the reason, without escapes');

# --------------------------------------------------------------------------
# a cache folder of huggingface_hub

is(hub_xet('import', 'in/a', 'me/folder')->{code}, 0, 'import: a folder');
is(hub_xet('get', 'me/folder')->{code}, 0, 'import: a folder comes back');
same('in/a', 'folder', 'import: a folder as it was');

for my $repo ('datasets--bob--no', 'models--alice--late') {
	put_file("refuses/$repo/refs/main", '01' x 20);
	make_path("$dir/refuses/$repo/blobs");
	put_file("refuses/$repo/snapshots/" . '01' x 20 . '/x', $repo);
}

$r = token_xet('alice', 'import', 'refuses');
is($r->{code}, 4, 'import: one is refused') or diag($r->{err});
is(token_xet('alice', 'get', 'alice/late/x', '-o', '-')->{out},
	'models--alice--late', 'import: and the others are not');
is($r->{err} =~ tr/\n//, 1, 'import: one message') or diag($r->{err});

SKIP: {
	my $python = build_dir() . '/clients/huggingface_hub/bin/python';

	skip 'no huggingface_hub', 17 unless -x $python;

	my $cache = "$dir/cache";
	my $script = 'import sys; from huggingface_hub import *; '
		. '[snapshot_download(a.split(":")[1], '
		. 'repo_type=a.split(":")[0]) for a in sys.argv[1:]]';

	local %ENV = (%ENV, HF_ENDPOINT => $t->url(''), HF_HUB_CACHE => $cache,
		HF_HOME => "$dir/home", HF_HUB_DISABLE_TELEMETRY => 1,
		HF_HUB_DISABLE_PROGRESS_BARS => 1, no_proxy => '*');

	# a cache in the old layout, and a cache whose repos share blobs

	hub_xet('put', '-r', 'in/a', 'datasets/me/d');
	system("HF_HUB_DISABLE_SHARED_BLOBS=1 $python -c '$script' "
		. "model:me/folder > $dir/python.log 2>&1") == 0
		or diag(slurp("$dir/python.log"));
	system("$python -c '$script' model:me/model dataset:me/d"
		. " > $dir/python.log 2>&1") == 0
		or diag(slurp("$dir/python.log"));

	my $from = "$cache/models--me--model";

	$r = hub_xet('import', '--json', $from, 'me/copy');
	is($r->{code}, 0, 'import: a cache') or diag($r->{err});
	is(hub_xet('get', 'me/copy')->{code}, 0, 'import: comes back');
	same('in', 'copy', 'import: as it was');
	is(hub_xet('import', "$cache/models--me--folder", 'me/old')->{code}, 0,
		'import: an older cache');
	is(hub_xet('get', 'me/old')->{code}, 0, 'import: comes back, too');
	same('in/a', 'old', 'import: as it was, too');

	my ($snapshot) = glob("$from/snapshots/*");

	symlink('/etc/passwd', "$snapshot/passwd");
	symlink('../../blobs/../../../in/new', "$snapshot/up");
	symlink('../../refs/main', "$snapshot/refs");
	symlink('../../blobs/loop', "$snapshot/loop");
	symlink('../../../../in/new', "$from/blobs/loop");
	symlink('../../../blobs/x', "$snapshot/above");

	$r = hub_xet('import', '--json', $from, 'me/copy');
	is($r->{code}, 3, 'import: links that lead out');
	is($r->{json}[-1]{files}, 0, 'import: are not followed');
	is(scalar(() = $r->{err} =~ /leads out of the cache/g), 4,
		'import: with a message');
	like($r->{err}, qr/^xet: loop: Too many/m, 'import: nor are blobs');
	unlink(map { "$snapshot/$_" } qw/ passwd up refs above loop /);

	$r = hub_xet('import', $from, 'me/copy', '--revision', 'no');
	is($r->{code}, 3, 'import: a reference that is not there');
	is(hub_xet('import', $from)->{code}, 2, 'import: without a name');

	mkdir("$cache/models--alone");
	$r = hub_xet('import', '--json', $cache, 'you');
	is($r->{code}, 1, 'import: all of a cache');
	is($r->{err}, "xet: models--alone: skipped: contains no"
		. " complete snapshot\n", 'import: but what is none');
	is(join(' ', map { "$_->{type}:$_->{repo}" } grep { $_->{repo} }
		@{ $r->{json} }), 'dataset:you/d model:you/folder'
		. ' model:you/model',
		'import: by their names');

	is(hub_xet('get', 'datasets/you/d', '-o', 'yours')->{code}, 0,
		'import: a dataset');
	same('in/a', 'yours', 'import: of all of them');
}

$t->done();

# --------------------------------------------------------------------------

sub put_file {
	my ($path, $data) = @_;

	make_path("$dir/" . $path =~ s!/[^/]*\z!!r);
	spew("$dir/$path", $data);
}

sub hub_options {
	return (dir => $dir, timeout => 300,
		env => { HF_ENDPOINT => $t->url('') });
}

sub hub_xet {
	my (@args) = @_;

	my %o = ref $args[0] ? %{ shift @args } : ();

	return xet($t, { hub_options(), %o }, @args);
}

sub token_xet {
	my ($who, @args) = @_;

	return hub_xet({ endpoint => '', env => {
		HF_ENDPOINT => $t->url('', 8081),
		XET_TOKEN => $token{$who} // '' } }, @args);
}

sub token {
	my ($who) = @_;

	return xet($t, 'token', '--key', $t->dir() . '/token.key', '--subject',
		$who, '--scope', 'write')->{out} =~ s/\s//gr;
}

sub requests {
	my ($what) = @_;

	return scalar(() = $t->read_file('hub.log') =~ /^\d+ $what/mg);
}

sub same {
	my ($one, $two, $name) = @_;

	is(`cd $dir; diff -r $one $two 2>&1`, '', $name);
}

sub lying {
	return (env => { HF_ENDPOINT => $t->url('', 8082) }, timeout => 60);
}

# Sets the Hub's responses: a tree, and any other parts that are different.

sub lie {
	my ($tree, %other) = @_;

	my %link = map { $_ => delete $other{"link$_"} } '', 3, 4;
	my %said = (revision => { id => 'me/m', sha => $oid }, tree => $tree,
		'xet-read-token' => $told, paths => [], tree2 => [], %other);

	for my $what (keys %said) {
		$t->write_file("lies/$what", ref $said{$what}
			? $json->encode($said{$what}) : $said{$what});
	}

	my $map = join('', map { ($_ ? "~cursor=$_" : '~recursive') . ' "'
		. $link{$_} =~ s/"/\\"/gr . "\";\n" }
		grep { $link{$_} } sort keys %link);

	if ($map ne slurp($t->dir() . '/lies/link')) {
		spew($t->dir() . '/lies/link', $map);
		$t->reload();
	}

	$lied++;
}

sub lied {
	return hub_xet({ lying() }, 'get', 'me/m', '--retries', 0, '-o',
		"out$lied");
}

sub refused {
	my ($code, $name, $some) = @_;

	my $r = lied();

	is($r->{code}, $code, "lies: $name");
	is($r->{err} =~ tr/\n//, $code ? 1 : 0, "lies: $name: one line")
		or diag($r->{err});
	is_deeply([ glob("$dir/out$lied/* $dir/victims/*") ], [],
		"lies: $name: nothing is there") if $code && !$some;
}

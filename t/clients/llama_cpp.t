#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# llama.cpp, built from its sources (see t/clients/setup.sh), downloads GGUF
# files by a tag, by a name and by a URL: of private repos, in several parts,
# interrupted, again, and after a new commit.  Its program "llama download"
# prints the paths of the files in its cache, without loading them.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Bytes qw/ random_bytes /;
use Test::Xet::Process qw/ reap run_command slurp spawn spew wait_for /;
use Test::Xet::Table;

use File::Find qw/ find /;
use File::Temp qw/ tempdir /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $llama = Test::Xet::Real::build() . '/clients/llama_cpp/llama';

plan(skip_all => 'llama.cpp is not built') unless -x $llama;

# a large file takes some seconds

my %hub = Test::Xet::Table::hub('xet_auth token; xet_hub_public on;'
	. ' limit_rate 20m;', Test::Xet::Token::token_location() . <<'EOF');

        location /below/ {
            xet_hub on;
            xet_hub_base /below;
            xet_api_base /cas;
            xet_auth token;
            xet_hub_public on;
        }
EOF

$hub{http} .= ' map $http_authorization $who { "" nobody; default token; }'
	. ' log_format llama "$request_method $uri $status $http_range $who'
	. ' $http_user_agent"; access_log %%DIR%%/llama.log llama;';

my $t = Test::Xet->new(%hub, workers => 1);

$t->allow(qr/xet: 4\d\d /);
$t->token_key();
$t->run();

my $alice = $t->auth('admin', '@alice');
my $bob = $t->auth('admin', '@bob');
my $token = $alice->{Authorization} =~ s/^Bearer /hf_/r;
my $table = Test::Xet::Table->new($t);
my ($mark, $marks, %data, @seen) = (0, 0);

like($token, qr/\Ahf_[A-Za-z0-9]{34,253}\z/, 'a token that llama.cpp sends');

# --------------------------------------------------------------------------
# tags and names

my $odd = 'b/c d+é-Q5_0.gguf';

create('m');
commit('m', 'a-Q4_K_M.gguf', 'a-Q8_0.gguf', $odd, 'imatrix.gguf', 'note.txt');

gets('m', [], 'a-Q4_K_M.gguf');
is_deeply([ map { "@$_[0, 1]" } @seen ], [ 'GET /api/models/alice/m/refs',
	"GET /api/models/alice/m/tree/$data{m}{commit}",
	map { "$_ /alice/m/resolve/$data{m}{commit}/a-Q4_K_M.gguf" }
	qw/ HEAD GET / ], 'the requests');

gets('m:Q8_0', [], 'a-Q8_0.gguf');
gets('m:q4_k_m', [], 'a-Q4_K_M.gguf');
gets('m', [ '-hff', $_ ], $_) for 'a-Q8_0.gguf', $odd;

fails('m:Q9', [], 200);
fails('m', [ '-hff', 'none.gguf' ], 200);
fails('none', [], 404);

# --------------------------------------------------------------------------
# the cache: again, without the network, with huggingface_hub, a new commit

my %first = (machine => 'first');

gets('m', [], \%first, 'a-Q4_K_M.gguf');
gets('m:Q8_0', [], \%first, qw/ a-Q4_K_M.gguf a-Q8_0.gguf /);
gets('m', [], \%first, qw/ a-Q4_K_M.gguf a-Q8_0.gguf /);
is(files(), 0, 'again: no file is requested');
gets('m', [ '--offline' ], \%first, qw/ a-Q4_K_M.gguf a-Q8_0.gguf /);
is(@seen, 0, 'offline: no request');

$table->hf('hf: a file that llama.cpp has downloaded', { %first, token => '',
	prints => qr/a-Q8_0\.gguf/ }, 'download', 'alice/m', 'a-Q8_0.gguf');
look();
is(grep({ $_->[0] eq 'GET' && $_->[1] !~ m!^/api/! } @seen), 0,
	'hf: no bytes') or diag(show());

my %second = (machine => 'second');

$table->hf('hf: a file', { %second, token => '' }, 'download', 'alice/m',
	'a-Q8_0.gguf');
gets('m:Q8_0', [], \%second, 'a-Q8_0.gguf');
is(files(), 0, 'a file that hf has downloaded is not requested');

commit('m', 'a-Q4_K_M.gguf');
gets('m:Q4_K_M', [], \%first, 'a-Q4_K_M.gguf');
is(files('GET'), 1, 'a new commit: the file is requested');
gets('m:Q8_0', [], \%first, qw/ a-Q4_K_M.gguf a-Q8_0.gguf /);
is(files(), 0, 'a new commit: but no other');

# --------------------------------------------------------------------------
# private repos

create('secret', 1);
commit('secret', 's-Q4_0.gguf');

gets('secret', [], { token => $token }, 's-Q4_0.gguf');
is(grep({ $_->[4] eq 'token' } @seen), 4, 'all requests have the token');

for my $case ([ 'no token', '', 404 ],
	[ "bob's token", $bob->{Authorization} =~ s/^Bearer /hf_/r, 404 ],
	[ 'a wrong token', 'hf_' . 'a' x 40, 401 ],
	[ 'a token without hf_, which it does not send',
	$token =~ s/^hf_//r, 404 ])
{
	my ($name, $value, $status) = @$case;

	fails($_, [], $status, $value, "$name: ") for qw/ secret missing /;
}

# --------------------------------------------------------------------------
# several files: parts, and others beside a model

my @parts = map { "Q8_0/p-Q8_0-0000$_-of-00003.gguf" } 1 .. 3;

create('parts');
commit('parts', @parts, 'mmproj-p-F16.gguf', 'mmproj-p-Q8_0.gguf',
	'mtp-p-Q8_0.gguf');
gets('parts', [], @parts, 'mmproj-p-Q8_0.gguf');
gets('parts', [ '--no-mmproj' ], @parts);
gets('parts:Q8_0', [ '--no-mmproj', '--mtp' ], @parts, 'mtp-p-Q8_0.gguf');

create('preset');
commit('preset', 'preset.ini', 'x-Q4_0.gguf');
gets('preset', [], 'preset.ini');

# --------------------------------------------------------------------------
# a moved repo, and a Hub whose URL has a path

is($t->post('/api/repos/move',
	\'{"fromRepo":"alice/m","toRepo":"alice/moved"}', $alice)->{status},
	200, 'a moved repo');
$data{moved} = $data{m};

gets('m', [], 'a-Q4_K_M.gguf');
gets('m', [ '-hff', $odd ], $odd);
gets($_, [ '-hff', $odd ], { env => { HF_ENDPOINT => $t->url('/below') } },
	$odd) for qw/ m moved /;
gets('moved', [], { env => { HF_ENDPOINT => 'http://127.0.0.1:1',
	MODEL_ENDPOINT => $t->url('/below/') } }, 'a-Q4_K_M.gguf');

# --------------------------------------------------------------------------
# interrupted downloads

my $big = $table->dir() . '/big-Q4_0.gguf';

create('big');
spew($big, gguf(1, 60_000_000));
$data{big}{files}{'big-Q4_0.gguf'} = slurp($big);
$table->hf('a large file', { token => $token }, 'upload', 'alice/big', $big);
$data{big}{commit} = $t->get('/api/models/alice/big/refs')->json()
	->{branches}[0]{targetCommit};

for my $who (qw/ client server /) {
	my $home = $table->machine($who);
	my $pid = start('big', { machine => $who });
	my $part;

	ok(wait_for(60, sub {
		($part) = glob("$home/hub/*/blobs/*.downloadInProgress");
		return $part && -s $part > 4_000_000;
	}), "interrupted $who: a part is there");
	look();

	if ($who eq 'client') {
		kill('KILL', $pid);
		reap($pid, 10);
		gets('big', [], { machine => $who }, 'big-Q4_0.gguf');

	} else {
		$t->kill_worker();
		is(reap($pid, 60), 0, 'interrupted server: the run goes on');
		ok(cached($who, 'big')->{'big-Q4_0.gguf'}
			eq $data{big}{files}{'big-Q4_0.gguf'},
			'interrupted server: the bytes');
		look();
	}

	my ($from) = map { $_->[2] == 206 && $_->[3] =~ /^bytes=(\d+)-$/
		? $1 : () } @seen;

	cmp_ok($from // 0, '>', 4_000_000, "interrupted $who: only the rest")
		or diag(show());
}

# --------------------------------------------------------------------------
# URLs

my $url = $t->url('/alice/secret/resolve/main/s-Q4_0.gguf');
my $dir = tempdir(CLEANUP => 1);
my @url = ('-mu', $url, '-m', "$dir/s.gguf");

for my $run (1 .. 2) {
	is_deeply([ run(\@url, { token => $token }) ], [ 0, "$dir/s.gguf\n" ],
		"a URL: run $run");
	is(slurp("$dir/s.gguf"), $data{secret}{files}{'s-Q4_0.gguf'},
		"a URL: the bytes: run $run");
	is(files('GET'), 2 - $run, "a URL: requests: run $run");
}

commit('secret', 's-Q4_0.gguf');
run(\@url, { token => $token });
ok(slurp("$dir/s.gguf") eq $data{secret}{files}{'s-Q4_0.gguf'},
	'a URL: new bytes');

unlink("$dir/s.gguf");
like((run(\@url, { token => '' }))[1], qr/failed with status code: 404/,
	'a URL: no token');
is_deeply([ glob("$dir/s.gguf*") ], [ "$dir/s.gguf.etag" ],
	'a URL: no token: no file');

run([ '-mu', $t->url("/alice/parts/resolve/main/$parts[0]"), '-m',
	"$dir/p.gguf" ], { token => '' });
ok((slurp("$dir/" . s!.*/!!r, 1) // '') eq $data{parts}{files}{$_},
	"a URL: $_") for @parts;

$t->done();

# --------------------------------------------------------------------------

# Runs "llama download"; returns its status and its output.

sub run {
	my ($args, $o) = @_;

	look();

	local %ENV = $table->env($o);
	my @result = run_command([ $llama, 'download', @$args ],
		timeout => 120);

	look();

	return @result;
}

sub start {
	my ($repo, $o) = @_;

	local %ENV = $table->env({ token => '', %$o });

	return spawn([ $llama, 'download', '-hf', "alice/$repo" ]);
}

# Downloads into a machine's cache, by default a new one, and checks all files
# of the newest commit that the cache has.

sub gets {
	my ($name, $args, @files) = @_;

	my $o = { token => '', machine => 'm' . ++$marks,
		ref($files[0]) ? %{ shift(@files) } : () };
	my $repo = $name =~ s/:.*//r;
	my $what = "$name @$args: @files";

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my ($status, $out) = run([ '-hf', "alice/$name", @$args ], $o);
	my $found = cached($o->{machine}, $repo);

	ok(!$status && $out =~ m!^/.*/snapshots/$data{$repo}{commit}/!m, $what)
		or diag("status $status\n$out", show());
	is_deeply([ sort keys %$found ], [ sort @files ], "$what: the files");
	is(grep({ $found->{$_} ne $data{$repo}{files}{$_} } keys %$found), 0,
		"$what: the bytes");
}

# Checks that a download fails, and the status of the last response.  Not every
# run prints what the program logs about it.

sub fails {
	my ($name, $args, $last, $value, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my ($status, $out) = run([ '-hf', "alice/$name", @$args ],
		{ token => $value // '' });

	$what = join(' ', ($what // '') . $name, @$args);
	isnt($status, 0, "$what: fails");
	like($out, qr/error: model download failed/, "$what: an error");
	is((@seen ? $seen[-1][2] : 'none'), $last, "$what: the status");
	is(files(), 0, "$what: no file is requested");
}

# Returns the files of a machine's cache, of the newest commit of a repo.

sub cached {
	my ($machine, $repo) = @_;

	my $dir = $table->machine($machine)
		. "/hub/models--alice--$repo/snapshots/$data{$repo}{commit}";
	my %found;

	find({ no_chdir => 1, wanted => sub {
		$found{substr($_, 1 + length($dir))} = slurp($_) unless -d;
	} }, $dir) if -d $dir;

	return \%found;
}

# Sets @seen to the requests since the last call.  The request that it sends is
# logged after all that were answered before.

sub look {
	my $uri = '/look/' . ++$marks;

	$t->get($uri);
	wait_for(10, sub { $t->read_file('llama.log') =~ /^GET \Q$uri\E /m });

	my $log = $t->read_file('llama.log');

	@seen = map { [ /^(\S+) (.*) (\d+) (\S+) (\w+) (.*)$/ ] }
		grep { !m!^\w+ /look/! } split(/\n/, substr($log, $mark));
	$mark = length($log);
}

# Returns the number of requests for files.

sub files {
	my ($method) = @_;

	return scalar(grep { $_->[1] =~ m!/resolve/!
		&& (!$method || $_->[0] eq $method) } @seen);
}

sub show { return join('', map { "@$_\n" } @seen) }

sub gguf {
	my ($seed, $size) = @_;

	return 'GGUF' . pack('VQ<Q<', 3, 0, 0) . random_bytes($seed, $size);
}

sub create {
	my ($name, $private) = @_;

	is($t->post('/api/repos/create', \JSON::PP::encode_json({
		name => $name, private => $private ? JSON::PP::true()
		: JSON::PP::false() }), $alice)->{status}, 200, "repo $name");
}

# Commits files with new bytes.

sub commit {
	my ($name, @paths) = @_;

	my $files = $data{$name}{files} ||= {};

	$files->{$_} = gguf(++$marks, 30_000) for @paths;

	my $json = JSON::PP->new()->latin1();
	my $r = $t->post("/api/models/alice/$name/commit/main", \join("\n",
		map { $json->encode($_) } { key => 'header', value =>
		{ summary => 'files' } }, map { { key => 'file', value => {
		path => $_, encoding => 'base64',
		content => encode_base64($files->{$_}, '') } } } @paths),
		{ %$alice, 'Content-Type' => 'application/x-ndjson' });

	is($r->{status}, 200, "files of $name") or diag($r->{body});
	$data{$name}{commit} = $r->json()->{commitOid};
}

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Requests that a Hub with tokens refuses, sent by unmodified clients.  For
# other callers, private repos do not exist.  The token belongs to another user,
# is missing, or has too small a scope.  Public repos may or may not be readable
# without a token.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ patience slurp spew /;
use Test::Xet::Real;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();

my $t = Test::Xet->new(Test::Xet::Table::hub(
	'xet_auth token; xet_hub_public on;', <<'EOF'));

        location /closed/ {
            xet_hub on;
            xet_hub_base /closed;
            xet_api_base /cas;
            xet_auth token;
            client_max_body_size 200m;
        }
EOF

$t->token_key();
$t->write_file('other.key', 'token:t1:' . 'cd' x 32 . "\n");
chmod(0600, $t->dir() . '/other.key');
$t->run();

my $table = Test::Xet::Table->new($t);
my $dir = $table->dir();
my $url = $t->url('');

my %tokens = (
	ADMIN => token('alice', 'admin'),
	DELETE => token('alice', 'delete'), WRITE => token('alice', 'write'),
	READ => token('alice', 'read'), OTHER => token('bob', 'delete'),
	EXPIRED => token('alice', 'delete', lifetime => '1s'),
	FORGED => token('alice', 'delete', key => 'other.key')
);

# --------------------------------------------------------------------------
# huggingface_hub

python('Python', 'made');

ok(wait_for(20, sub {
	return $t->get('/api/whoami-v2', { Authorization =>
		"Bearer $tokens{EXPIRED}" })->{status} == 401;
}), 'a token has expired');

python('Python', 'refused');
python('Python without Xet', 'refused', HF_HUB_DISABLE_XET => 1);
python('Python', 'closed', HF_ENDPOINT => "$url/closed");

# other clients

hf();
$table->script('Node', { token => '' }, Test::Xet::Real::node_program(),
	'hub_table.mjs', Test::Xet::Real::build() . '/npm', 'refused', $url,
	$tokens{READ}, $table->machine(), $tokens{OTHER});
plain();

SKIP: {
	skip 'no git-lfs', 1 if system('git lfs version >/dev/null 2>&1');

	git_lfs();
}

lfs_batch();
unread();

python('Python', 'kept');

$t->done();

# --------------------------------------------------------------------------

sub token {
	my ($who, $scope, %o) = @_;

	my $key = $t->dir() . '/' . ($o{key} || 'token.key');
	my @command = (Test::Xet::Real::build() . '/xet', 'token', '--key',
		$key, '--subject', $who, '--scope', $scope,
		'--lifetime', $o{lifetime} || '2h');

	open(my $fh, '-|', @command) or die "$command[0]: $!\n";

	my $token = <$fh>;

	close($fh) or die "$command[0]: $?\n";
	chomp($token);

	return "hf_$token";
}

sub python {
	my ($name, $command, %env) = @_;

	$table->script($name, { token => '', env => { %tokens, %env } },
		$table->python(), 'hub_refused.py', $command,
		$table->machine());
}

sub hf {
	my %alice = (machine => 'alice', token => '');
	my %bob = (token => $tokens{OTHER}, fails => 1);
	my $down = "$dir/hf-down";

	$table->hf('hf auth login', { %alice, prints => qr/successful/ },
		qw/ auth login --token /, $tokens{WRITE});
	$table->hf('hf auth whoami', { %alice, prints => qr/\balice\b/ },
		qw/ auth whoami /);
	$table->hf('hf auth login: without hf_', { token => '',
		prints => qr/successful/ }, qw/ auth login --token /,
		substr($tokens{WRITE}, 3));
	$table->hf("hf auth login: $_", { token => '', fails => 1,
		prints => qr/invalid/i }, qw/ auth login --token /,
		$tokens{$_}) for qw/ EXPIRED FORGED /;
	$table->hf('hf auth whoami: nobody', { token => '', fails => 1 },
		qw/ auth whoami /);

	$table->hf('hf download: what is private', \%alice, 'download',
		'alice/secret', '--local-dir', $down);
	is(slurp("$down/f.txt"), 'the bytes of a secret',
		'hf download: what is private: its bytes');

	for my $who ([ 'bob', %bob ], [ 'nobody', token => '', fails => 1 ]) {
		my ($name, %o) = @$who;
		my $no = $name eq 'bob' ? qr/403|forbidden/i
			: qr/401|unauthorized|not logged in|log in/i;

		$table->hf("hf download: $name: what is private", { %o,
			prints => qr/not found/i },
			qw! download alice/secret f.txt !);
		$table->hf("hf download: $name: all that is private", { %o,
			prints => qr/not found/i },
			qw! download alice/secret !);
		$table->hf("hf upload: $name", { %o, prints => $no },
			'upload', 'alice/open', "$down/f.txt", 'hf.txt');
		$table->hf("hf repos create: $name", { %o, prints => $no },
			qw! repos create alice/hf !);
		$table->hf("hf repos delete: $name", { %o, prints => $no },
			qw! repos delete alice/open -y !);
		$table->hf("hf buckets list: $name: what is private", { %o,
			prints => qr/not found/i },
			qw! buckets list alice/bk !);
		$table->hf("hf buckets sync: $name: what is private", { %o,
			prints => qr/not found/i }, qw! buckets sync
			hf://buckets/alice/bk !, "$dir/hf-sync");
		$table->hf("hf buckets cp: $name", { %o,
			prints => $no }, 'buckets', 'cp',
			"$down/f.txt", 'hf://buckets/alice/bo/hf.txt');
		$table->hf("hf buckets rm: $name", { %o,
			prints => $no }, qw! buckets rm alice/bo/f.txt -y !);
	}

	$table->hf('hf upload: a token to read', { token => $tokens{READ},
		fails => 1, prints => qr/403|forbidden/i }, 'upload',
		'alice/open', "$down/f.txt", 'hf.txt');
	$table->hf('hf repos delete: a token to write', {
		token => $tokens{WRITE}, fails => 1,
		prints => qr/403|forbidden/i },
		qw! repos delete alice/open -y !);
}

# curl and wget: they report the status, and send the token in a header.

sub plain {
	my $path = 'alice/secret/resolve/main/f.txt';
	my @curl = (qw/ curl -sS -L -o /, "$dir/curl", '-w', '%{http_code}');

	for (
		[ 'nobody', 404, $path ],
		[ 'bob', 404, $path, $tokens{OTHER} ],
		[ 'alice', 200, $path, $tokens{READ} ],
		[ 'a token that is none', 401, $path, 'hf_junk' ],
		[ 'a forged one', 401, $path, $tokens{FORGED} ],
		[ 'nobody, closed', 401, "closed/$path" ],
		[ 'bob, closed', 404, "closed/$path", $tokens{OTHER} ],
		[ 'alice, closed', 200, "closed/$path", $tokens{READ} ],
		[ 'nobody, a bucket', 404,
			'buckets/alice/bk/resolve/f.txt' ],
		[ 'nobody, what is open', 200,
			'alice/open/resolve/main/f.txt' ],
		[ 'nobody, what is not there', 404,
			'alice/no/resolve/main/f.txt' ]
	) {
		my ($name, $status, $what, $token) = @$_;
		my @auth = $token ? ('-H', "Authorization: Bearer $token")
			: ();

		$table->program("curl: $name", { prints => qr/^$status$/ },
			@curl, @auth, "$url/$what");
		unlike(slurp("$dir/curl"), qr/bytes of a secret/,
			"curl: $name: not a byte") if $status != 200;
		$table->program("curl -I: $name", { prints =>
			qr/^$status$/ }, @curl, '-I', @auth, "$url/$what");
	}

	# private repos and missing ones look alike

	my @head = map { my $r = $t->get($_); [ $r->{status}, $r->{body},
		map { $r->header_value($_) // '' } qw/ X-Error-Code
			X-Error-Message WWW-Authenticate Content-Type / ] }
		"/$path", '/alice/nothing/resolve/main/f.txt';

	is_deeply($head[0], $head[1], 'nobody: private, or not there');

	$table->program('wget: bob', { fails => 1, prints => qr/404/ },
		qw/ wget -O /, "$dir/wget", '--header',
		"Authorization: Bearer $tokens{OTHER}", "$url/$path");
	$table->program('wget: alice', {}, qw/ wget -q -O /, "$dir/wget",
		'--header', "Authorization: Bearer $tokens{READ}",
		"$url/$path");
	is(slurp("$dir/wget"), 'the bytes of a secret',
		'wget: alice: the bytes');
}

# git-lfs: the token is in a header that git is configured to send, or it is a
# user's password, as with other Hubs.

sub git_lfs {
	my $where = "$dir/git";
	my $data = 'what git-lfs has';
	my $oid = sha256_hex($data);
	my $run = sub {
		my ($name, $o, $token, @args) = @_;

		local $Test::Builder::Level = $Test::Builder::Level + 1;

		my %env = (GIT_TERMINAL_PROMPT => 0, GIT_CONFIG_NOSYSTEM => 1,
			$token ? (GIT_CONFIG_COUNT => 1,
				GIT_CONFIG_KEY_0 => 'http.extraHeader',
				GIT_CONFIG_VALUE_0 =>
					"Authorization: Bearer $token") : ());

		return $table->program("git lfs: $name", { %$o, dir => $where,
			machine => 'git', token => '', env => \%env }, 'git',
			@args);
	};

	mkdir($where);
	spew("$where/w.bin", $data);

	for ([ 'user.name', 'me' ], [ 'user.email', 'me@localhost' ],
		[ 'safe.directory', '*' ], [ 'lfs.locksverify', 'false' ])
	{
		system('git', 'config', '--file', $table->machine('git')
			. '/.gitconfig', @$_) == 0 or die;
	}

	for my $args ([ qw/ lfs install --skip-repo / ],
		[ qw/ init -q . / ],
		[ qw/ lfs track *.bin / ], [ qw/ add . / ],
		[ qw/ commit -q -m one / ])
	{
		$run->($args->[0] . ' ' . $args->[1], {}, undef, @$args);
	}

	my @push = qw/ lfs push --object-id /;
	my $open = "$url/alice/open.git/info/lfs";
	my $secret = "$url/alice/secret.git/info/lfs";

	my $no = qr/not write to it|not permit writing/;

	for (
		[ 'push: bob', { fails => 1, prints => $no }, 'OTHER', $open ],
		[ 'push: a token to read', { fails => 1, prints => $no },
			'READ', $open ],
		[ 'push: nobody', { fails => 1,
			prints => qr/credentials|401|authent/i }, undef,
			$open ],
		[ 'push: bob, what is private', { fails => 1,
			prints => qr/not found|404/i }, 'OTHER', $secret ]
	) {
		my ($name, $o, $token, $lfs) = @$_;

		$run->($name, $o, $token && $tokens{$token}, '-c',
			"lfs.url=$lfs", @push, $lfs, $oid);
	}

	$table->requests();

	my ($as_user, $as_bob) = map { my $t = $tokens{$_};
		$open =~ s!//!//somebody:$t\@!r } qw/ WRITE OTHER /;

	$run->('push: bob, his token as password', { fails => 1,
		prints => $no }, undef, '-c',
		"lfs.url=$as_bob", @push, $as_bob, $oid);
	$run->('push: alice, her token as password', {}, undef, '-c',
		"lfs.url=$as_user", @push, $as_user, $oid);

	my @put = grep { $_->[0] eq 'PUT' } $table->requests();

	is(scalar(@put), 1, 'git lfs: push: alice: one object');

	$run->('push: alice, in a header', {}, $tokens{WRITE}, '-c',
		"lfs.url=$open", @push, $open, $oid);
	is(scalar(grep { $_->[0] eq 'PUT' } $table->requests()), 0,
		'git lfs: push: alice: not again');
}

# Calls the route that git-lfs uses, for private repos.

sub lfs_batch {
	my $batch = sub {
		my ($repo, $headers) = @_;

		return $t->post("/$repo.git/info/lfs/objects/batch",
			\JSON::PP::encode_json({ operation => 'download',
				objects => [ { oid => sha256_hex(
					'the bytes of a secret'),
					size => 21 } ] }),
			{ 'Content-Type' => 'application/vnd.git-lfs+json',
				%$headers });
	};

	is($batch->('alice/secret', {})->{status}, 404,
		'LFS batch: nobody, what is private');
	is($batch->('alice/secret', { Authorization =>
		"Bearer $tokens{OTHER}" })->{status}, 404,
		'LFS batch: bob, what is private');

	my $r = $batch->('bob/own', { Authorization =>
		"Bearer $tokens{OTHER}" });

	is($r->{status}, 200, 'LFS batch: bob, by the hash that he knows');
	is($r->json()->{objects}[0]{error}{code}, 404,
		'LFS batch: bob, by the hash that he knows: it is not his');

	$r = $batch->('alice/secret', { Authorization =>
		"Bearer $tokens{READ}" });
	ok($r->json()->{objects}[0]{actions}{download}{href},
		'LFS batch: alice');
}

# A refused caller may not have sent the body yet.  The server must not read
# this body as the next request.

sub unread {
	my $js = { 'Content-Type' => 'application/json',
		Authorization => "Bearer $tokens{WRITE}" };
	my $body = '{"key":"header","value":{"summary":"s"}}';

	$t->post('/api/repos/create', \'{"name":"was"}', $js);
	is($t->post('/api/repos/move', \JSON::PP::encode_json({
		fromRepo => 'alice/was', toRepo => 'alice/is' }), $js)
		->{status}, 200, 'a repo with another name');

	# the first requests get the response before they send the body

	for (
		[ 307, 'POST', '/api/models/alice/was/commit/main', 'WRITE',
			1 ],
		[ 403, 'POST', '/api/models/alice/is/commit/main', 'OTHER', 1 ],
		[ 404, 'POST', '/api/models/alice/no/commit/main', 'OTHER', 1 ],
		[ 401, 'POST', '/api/models/alice/is/branch/b', 'FORGED', 1 ],
		[ 403, 'POST', '/api/repos/create', 'READ', 1 ],
		[ 307, 'POST', '/api/models/alice/was/branch/b', 'WRITE' ],
		[ 307, 'DELETE', '/api/models/alice/was/tag/t', 'WRITE' ]
	) {
		my ($status, $method, $path, $token, $early) = @$_;
		my $body = $path =~ /commit|create/ ? $body : '{}';
		my $c = $t->connect();

		$c->start($method, $path, { %$js, Authorization =>
			"Bearer $tokens{$token}",
			'Content-Length' => length($body) });

		ok($c->fill(patience(10)), "$method $path: $token: at once")
			if $early;

		$c->send($body);
		is($c->response()->{status}, $status,
			"$method $path: $token");
		$c->start('GET', '/api/whoami-v2', $js);
		is($c->response()->{status}, 200,
			"$method $path: $token: and the next request");
	}
}

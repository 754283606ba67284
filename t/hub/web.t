#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The web pages of a Hub, with the shipped configuration and tokens: what
# clients without HTML get, that pages are the same for everyone, and in a
# browser each page and form, at two sizes and in both colours.  Names, cards
# and files of users never become scripts, and the token is in no URL or log.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Pages;
use Test::Xet::Process qw/ slurp spew wait_for /;

use JSON::PP ();
use MIME::Base64 qw/ decode_base64 /;

start_pages();

my %html = (Accept => 'text/html,*/*;q=0.8');

# --------------------------------------------------------------------------
# repos: one that all may see, and a private one

my %png = (content => decode_base64('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfF'
	. 'cSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='));
my $script = '<script>document.title = "evil"</script>';
my $card = "---\nlicense: mit\npipeline_tag: text-generation\n---\n# The card\n"
	. "\n$script\n<img src=x onerror='document.title=\"evil\"'>\n\n"
	. "[a file](d/text.txt) [far](https://far.example/x) "
	. "[bad](javascript:document.title='evil')\n\n![pic](pic.png)\n";
my @odd = ('<script>alert(1)<b>.txt', q{a"onclick='x' b.txti},
	"d/e/f g#?%41+;.bin", "-rf", "d/\$(touch x)`id`'.txt");

create('open', 0);
create('secret', 1);
commit('open', 'first', 'README.md' => $card, 'd/text.txt' => "one\ntwo\n",
	'pic.png' => $png{content}, 'page.html' => "<h1>x</h1>$script",
	'pic.svg' => "<svg xmlns='http://www.w3.org/2000/svg'>$script</svg>",
	'table.csv' => "name,value\n\"a,\"\"b\",1\n<b>x</b>,2\n",
	'data.json' => '{"a":[1,{"b":"<i>"}]}',
	'code.py' => "def f(x):\n    return x + 1\n",
	'evil.js' => 'document.title = "evil"',
	'evil.css' => '* { display: none }',
	'm.safetensors' => safetensors(),
	map { $_ => "odd $_\n" } @odd);
commit('open', 'second', 'd/text.txt' => "one\n2\nthree\n");
commit('secret', 'hidden things', 'README.md' => "# Hidden card\n\n"
	. "![p](p.png)\n",
	'p.png' => $png{content}, 'note.txt' => 'a hidden note');

# --------------------------------------------------------------------------
# without a browser

my $r = $t->get('/alice/secret');

is($r->{status}, 200, 'a text');
is($r->header_value('Content-Type'), 'text/plain; charset=utf-8', 'plain');
like($r->{body}, qr!curl \Q@{[ $t->url('') ]}\E/api/models/alice/secret/tree!,
	'it lists');
like($r->{body}, qr!hf download alice/secret!, 'it downloads');
is($t->get('/alice/nothing')->{body} =~ s/nothing/secret/gr, $r->{body},
	'the text of a missing repo is the same');
is($t->get('/alice/secret', \%alice)->{body}, $r->{body},
	'the text for the owner, too');
like($t->get('/')->{body}, qr!/api/models\n!, 'the root');
like($t->get('/datasets/a/b/tree/main/x')->{body}, qr/--repo-type dataset/,
	'a dataset');
like($t->get('/buckets/a/b')->{body}, qr!buckets sync hf://buckets/a/b!,
	'a bucket');
unlike($t->get("/a/%24(touch%20x)%60id%60")->{body}, qr/touch|`/,
	'no name that a shell would interpret');

# --------------------------------------------------------------------------
# the file for browsers

my $page = $t->get('/', \%html);

is($page->{status}, 200, 'a page');
like($page->{body}, qr/<noscript>/, 'it says what to do without scripts');

for my $uri ('/alice/secret', '/alice/nothing', '/datasets', '/alice',
	'/alice/open/tree/main/d', '/alice/open/blob/refs%2Fpr%2F1/x',
	'/alice/open/settings', '/buckets/a/b/tree/x', '/alice/open/')
{
	for my $who ({}, \%alice, { Authorization => 'Bearer x' }) {
		my $r = $t->get($uri, { %html, %$who });

		is($r->{body}, $page->{body}, "$uri: the same page");
	}
}

is($t->get('/alice/open/nothing/main', \%html)->{status}, 404, 'no such page');
is($t->get('/alice/open/tree/main/d', { %html,
	'If-None-Match' => $page->header_value('ETag') })->{status}, 304,
	'revalidated');

my $policy = $page->header_value('Content-Security-Policy');

like($policy, qr/^default-src 'none'; script-src 'self'; style-src 'self';/,
	'the policy');
unlike($policy, qr/unsafe|https?:|\*/, 'nothing else');
like($policy, qr/require-trusted-types-for 'script'/, 'no HTML from strings');
is($page->header_value('X-Content-Type-Options'), 'nosniff', 'nosniff');
like(join(', ', $page->header_value('Vary')), qr/Accept(?!-)/, 'Vary');

for my $file ('app.js', 'sw.js', 'style.css', 'icon.svg', 'lib/marked.js',
	'lib/purify.js', 'lib/highlight.js')
{
	my $r = $t->get("/-/$file");

	is($r->{status}, 200, "/-/$file");
	is($r->header_value('Content-Security-Policy'), $policy,
		"/-/$file: policy");
}

unlike($t->get($_)->{body}, qr/xet_hub on|root:/, "$_: no other file")
	for '/-/../xet_hub.conf', '/-/lib/../../xet_hub.conf',
		'/-/%2e%2e/xet_hub.conf', '/-../xet_hub.conf';
is($t->get('/-/lib/')->{status}, 403, 'no index of a folder');

# a script in a repo is not one for the browser

for my $file (qw/ page.html pic.svg evil.js evil.css code.py /) {
	my $r = $t->get("/alice/open/resolve/main/$file");

	is($r->{status}, 200, "$file of a repo");
	unlike($r->header_value('Content-Type'), qr/script|css/i,
		"$file: no type that a page may load");
	is($r->header_value('X-Content-Type-Options'), 'nosniff',
		"$file: nosniff");
	like($r->header_value('Content-Disposition'), qr/^attachment/,
		"$file: a download");
	is($r->header_value('Content-Security-Policy'),
		"default-src 'none'; sandbox", "$file: sandboxed");
}

# --------------------------------------------------------------------------
# the API that the pages need

my $commits = $t->get('/api/models/alice/open/commits/main')->json();

is_deeply(changes('main'), [ { path => 'd/text.txt', type => 'changed',
	size => 12, oldSize => 8 } ], 'changes of the last commit');
is(scalar @{ changes($commits->[1]{id}) }, 11 + @odd, 'of the first');
is(join(' ', sort map { $_->{type} } @{ changes($commits->[1]{id}) }),
	join(' ', ('added') x (11 + @odd)), 'all of them were added');
is_deeply(changes($commits->[-1]{id}), [], 'of the root');
is($t->get('/api/models/alice/secret/changes/main')->{status},
	$t->get('/api/models/alice/nothing/changes/main')->{status},
	'changes of a private repo');

my ($uri, @paged) = '/api/models/alice/open/changes/'
	. "$commits->[1]{id}?limit=3";

while ($uri) {
	my $r = $t->get($uri);

	push @paged, map { $_->{path} } @{ $r->json() };
	($uri) = ($r->header_value('Link') // '') =~ m!<http://[^/]+([^>]+)>!;
}

is(join('|', @paged), join('|', map { $_->{path} }
	@{ changes($commits->[1]{id}) }), 'page by page');

# the history of a path, and the differences between two commits

my $model = '/api/models/alice/open';

sub ids {
	my $r = $t->get("$model/commits/main$_[0]", $_[1]);

	return $r->{status} == 200 ? join(' ', map { $_->{id} } @{ $r->json() })
		: $r->{status} . ' ' . ($r->header_value('X-Error-Code') // '');
}

sub since { return changes("main?base=$_[0]") }

my @id = map { $_->{id} } @$commits;

is(ids(''), join(' ', @id), 'history');
is(ids("/$_"), join(' ', @id[0, 1]), "history of $_") for 'd/text.txt', 'd';
is(ids('/README.md'), $id[1], 'history of a file of the first commit');
is(ids('/no'), '', 'history of an unknown file');
is(ids('/d%00'), '400 ', 'history of an invalid path');
is($t->get("$model/commits/main/d")->header_value('X-Total-Count'), undef,
	'no count of a part of the history');
is(ids('?until=2100-01-01'), join(' ', @id), 'history until tomorrow');
is(ids('?until=2000-01-01T00:00:00Z'), '', 'history until 2000');
is(ids("?until=$_"), '400 ', "history until '$_'")
	for '', '2000', 'now', '2026-13-01', '2026-02-30T00:00:00Z', '%ff',
		"2000-01-01'", '99999-01-01';

is_deeply(since($id[1]), changes('main'), 'since the parent');
is_deeply(since($id[0]), [], 'since itself');
is(scalar @{ since($id[2]) }, 11 + @odd, 'since the root');
is_deeply(since(''), since($id[2]), 'since the beginning');
is_deeply(changes("$id[2]?base=main"), [ map { {
	path => $_->{path}, type => 'removed', size => undef,
	oldSize => $_->{size} } } @{ since($id[2]) } ], 'back to the root');

my ($secret) = @{ $t->get('/api/models/alice/secret/commits/main', \%alice)
	->json() };

is($t->get("$model/changes/main?base=$_")->{status}, 404,
	"since $_: not in this repo") for $secret->{id}, 'no', 'a' x 40;
is($t->get("$model/changes/main?base=$_")->{status}, 400, "since '$_'")
	for 'a%00', '%ff', '/../x';
is($t->get("/api/models/alice/secret/commits/main/$_")->summary(),
	$t->get("/api/models/alice/nothing/commits/main/$_")->summary() =~
		s/nothing/secret/gr, "history of $_ of a private repo")
	for qw/ README.md no /;

my ($list) = $t->get("$model/changes/main?base=$id[2]&limit=2")
	->header_value('Link') =~ m!<http://[^/]+([^>]+)>!;

is($t->get($list)->{status}, 200, 'the next page');
is($t->get($list =~ s/$id[2]/$id[1]/r)->{status}, 400,
	'its cursor is not one of another base');

my $who = $t->get('/api/whoami-v2', \%alice)->json()->{auth}{accessToken};

is($who->{scope}, 'admin', 'whoami: scope');
like($who->{expiresAt}, qr/^20\d\d-\d\d-\d\dT/, 'whoami: until when');

is($t->post('/api/buckets/alice/b', \'{"private":true}', \%alice)->{status},
	200, 'a bucket');
is(join(' ', map { $_->{id} } @{ $t->get('/api/buckets', \%alice)->json() }),
	'alice/b', 'all buckets');
is_deeply($t->get('/api/buckets')->json(), [], 'for a stranger: none');

for my $sort (qw/ usedStorage id createdAt lastModified /) {
	my $r = $t->get("/api/models?sort=$sort&limit=1");

	is_deeply([ map { $_->{id} } @{ $r->json() } ], [ 'alice/open' ],
		"by $sort: what a stranger may see");
	is($r->header_value('Link') =~ /cursor=/
		? scalar @{ $t->get($r->header_value('Link')
			=~ m!<http://[^/]+([^>]+)>!)->json() } : 0, 0,
		"by $sort: nothing after it");
}

# --------------------------------------------------------------------------
# in a browser

SKIP: {
	skip 'no Chromium', 1 unless $web;

	browse();
	$web->close();
}

is(join('', grep { index($_, $token{admin}) >= 0 } $t->log(),
	slurp($t->dir() . '/access.log')), '', 'the token is in no log');

# --------------------------------------------------------------------------

$t->allow(qr/ xet: (?:4\d\d) /);
$t->allow(qr/directory index of .* is forbidden|client sent invalid request/);

$t->done();

# --------------------------------------------------------------------------

# Walks through the pages, first as a stranger, then as alice.

sub browse {
	look('/', 'home');
	shows(qr/alice.open/, 'home: lists the public repo');
	unlike(text(), qr/secret/, 'home: hides the private one');

	set('main input[type=search]', 'nothing-here');
	shows(qr/Nothing found/, 'home: a search that finds nothing');
	set('main input[type=search]', 'ope');
	shows(qr/alice.open/, 'home: a search as one types');
	is($web->js('location.search'), '?search=ope', 'home: in the URL');

	look('/alice', 'owner');
	look('/alice/open', 'card');
	shows(qr/The card/, 'card: README');
	shows(qr/text-generation/, 'card: its metadata');
	unlike(text(), qr/license: mit\n/, 'card: without YAML');
	shows(qr/10 \(F32 6, BF16 4\)/, 'card: parameters');
	shows(qr/hf download alice\/open/, 'card: how to use it');
	is($web->js('document.querySelector("main img[src*=pic]")'
		. '?.naturalWidth'), 1, 'card: the image');
	is($web->js('!!document.querySelector("main script, main [onerror]")')
		? 1 : 0, 0, 'card: nothing that acts');
	is($web->js('[...document.querySelectorAll("main a")].filter((a) =>
		/^javascript:/i.test(a.href)).length'), 0,
		'card: no link that acts');
	press('main a', 'a file');
	shows(qr/three/, 'a link of the card: the file');

	look('/alice/open/tree/main', 'tree');
	shows(qr/table\.csv/, 'tree: files');
	shows(qr/<script>alert/, 'tree: an odd name, as text');
	look('/alice/open/commits/main', 'history');
	shows(qr/second/, 'history: commits');
	press('main a', 'second');
	shows(qr/d\/text\.txt/, 'commit: its file');
	shows(qr/three/, 'commit: its lines');
	look("/alice/open/commit/$commits->[0]{id}", 'commit');

	$t->sql("UPDATE xet.hub_commits SET made_at = now() - interval '9 days'"
		. " WHERE oid IN ('\\x$id[1]', '\\x$id[2]')");
	visit('/alice/open/commits/main');
	press('main a', 'last week');
	shows(qr/d\/text\.txt/, 'since last week: the file');
	shows(qr/three/, 'since last week: its lines');
	shows(qr/1 commit\b/, 'since last week: the number of commits');
	unlike(text(), qr/README/, 'since last week: only what changed');
	look('/alice/open/compare/main?base=' . $id[2], 'compare');
	shows(qr/README\.md/, 'since the root: all files');
	visit('/alice/open/compare/main?since=2000-01-01');
	shows(qr/From an empty repo/, 'since 2000');
	visit('/alice/open/compare/main?since=x');
	shows(qr/must be a date/, 'since x: an error');
	visit('/alice/open/blob/main/README.md');
	press('main .file-bar a', 'History');
	shows(qr/first/, 'history of a file: its commit');
	unlike(text(), qr/second/, 'history of a file: no other one');
	press('main a', 'All commits');
	shows(qr/second/, 'all commits');

	viewers();

	# not even a script of a page may load one from a repo

	is($web->js('new Promise((resolve) => { const node =
		document.createElement("link"); node.rel = "stylesheet";
		node.href = "/alice/open/resolve/main/evil.css";
		node.onload = () => resolve("loaded");
		node.onerror = () => resolve("refused");
		document.head.append(node); })'), 'refused',
		'a style of a repo');
	is($web->js('import("/alice/open/resolve/main/evil.js").then(
		() => "loaded", () => "refused")'), 'refused',
		'a script of a repo');
	is($web->js('(async () => { try {
		await navigator.serviceWorker.register(trustedTypes
			.createPolicy("xet", { createScriptURL: (x) => x })
			.createScriptURL("/alice/open/resolve/main/evil.js"));
		return "loaded"; } catch { return "refused"; } })()'),
		'refused', 'a service worker of a repo');
	is($web->js('document.querySelectorAll("a[href*=\"/settings\"]")'
		. '.length'), 0, 'a stranger: no settings');
	visit('/alice/secret');
	shows(qr/Not found/, 'a stranger: no private repo');

	sign_in();
	changing();
}

# A viewer for each kind of file.

sub viewers {
	my %shows = ('code.py' => qr/return x \+ 1/,
		'data.json' => qr/2 values/,
		'table.csv' => qr/a,"b/, 'm.safetensors' => qr/BF16/,
		'pic.png' => qr/pic/, 'pic.svg' => qr/pic/,
		'page.html' => qr/<h1>x/, 'README.md' => qr/The card/,
		'd/e/f g#?%41+;.bin' => qr/SHA-256/i);

	for my $file (sort keys %shows) {
		my $uri = '/alice/open/blob/main/'
			. $file =~ s!([^\w./-])!sprintf('%%%02X', ord($1))!ger;

		look($uri, 'file-' . $file =~ s!\W!_!gr);
		shows($shows{$file}, "$file: is shown");
	}
}

sub sign_in {
	press('#sign-in');
	set('dialog input[type=password]', 'wrong');
	press('dialog button', 'Sign in');
	ok(wait_for(20, sub { $web->js('document.querySelector("dialog")
		?.innerText.includes("does not accept")') }),
		'a wrong token is refused');
	set('dialog input[type=password]', $token{admin});
	press('dialog button', 'Sign in');
	shows(qr/Hidden card/, 'signed in: the private repo');

	unlike($web->js('location.href'), qr/eyJ|token/, 'no token in the URL');
	is($web->js('sessionStorage.length + "," + localStorage.length'), '1,0',
		'kept for the tab');

	# the browser itself requests the image: the service worker adds the
	# token

	visit('/alice/secret');
	ok(wait_for(20, sub { $web->js('document.querySelector('
		. '"main img[src*=p]")?.naturalWidth') }), 'a private image');

	for my $page (qw! secret secret/settings secret/upload/main
		secret/edit/main/note.txt !)
	{
		look("/alice/$page", 'own-' . $page =~ s!\W!_!gr);
	}
}

# Edits, uploads, creates and deletes.

sub changing {
	visit('/alice/secret/edit/main/note.txt');
	set('main textarea', "a changed note\n");
	press('#edit-commit');
	ok(wait_for(30, sub { $t->get('/alice/secret/resolve/main/note.txt',
		\%alice)->{body} eq "a changed note\n" }), 'an edit');

	upload();

	visit('/');

	for my $order ([ 'size', 'usedStorage' ], [ 'name', 'id' ]) {
		my ($value, $sort) = @$order;
		my @ids = map { $_->{id} } @{ $t->get(
			"/api/models?sort=$sort", \%alice)->json() };

		set('main select', $value);
		ok(wait_for(20, sub { $web->js('[...document.querySelectorAll('
			. '".repos .repo-name a")].map((a) => a.innerText'
			. '.trim()).filter((a) => a !== "alice/b").join(" ")')
			eq "@ids" }), "home: by $value");
	}

	visit('/');
	press('main button', 'New repo');
	set('dialog input[name=name]', 'made-here');
	press('dialog button', 'Create');
	ok(wait_for(30, sub { $web->js('location.pathname')
		eq '/alice/made-here' }), 'a new repo');

	visit('/alice/made-here/settings');
	press('main button', 'Delete');
	set('dialog input', 'alice/made-here');
	press('dialog button', 'Delete');
	ok(wait_for(30, sub { $t->get('/api/models/alice/made-here',
		\%alice)->{status} == 404 }), 'deleted, with its name typed');

	press('#account summary');
	press('#sign-out');
	ok(wait_for(20, sub { eval { $web->js(
		'!!document.querySelector("#sign-in")') } }), 'signed out');
	visit('/alice/secret');
	shows(qr/Not found/, 'signed out: no private repo');
}

# Uploads two files by the file chooser.

sub upload {
	my %data = ('one.txt' => "uploaded\n", 'two.bin' => join('',
		map { pack('N', $_ * 2654435761 % 2**32) } 1 .. 500_000));

	spew($t->dir() . "/$_", $data{$_}) for keys %data;

	visit('/alice/secret/upload/main/up');

	my $node = $web->call('Runtime.evaluate', { expression =>
		'document.querySelector("main input[type=file]")' });

	$web->call('DOM.setFileInputFiles', { files => [ map {
		$t->dir() . "/$_" } sort keys %data ],
		objectId => $node->{result}{objectId} });
	press('#upload-start');

	for my $file (sort keys %data) {
		ok(wait_for(60, sub { $t->get(
			"/alice/secret/resolve/main/up/$file",
			\%alice)->{body} eq $data{$file} }), "uploaded: $file");
	}
}

sub changes {
	my ($rev) = @_;

	my $rows = $t->get("/api/models/alice/open/changes/$rev")->json();

	return $rows unless ref($rows) eq 'ARRAY';

	for my $row (@$rows) {
		delete $row->{$_} for qw/ xetHash oldXetHash /;
	}

	return $rows;
}

sub safetensors {
	my $head = JSON::PP::encode_json({
		'model.layers.0.weight' => { dtype => 'F32',
			shape => [ 2, 3 ], data_offsets => [ 0, 24 ] },
		'<b>' => { dtype => 'BF16', shape => [ 4 ],
			data_offsets => [ 24, 32 ] } });

	return pack('Q<', length($head)) . $head . "\0" x 32;
}

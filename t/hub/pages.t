#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Pages of a Hub: their contents, and who may see them.  User data never becomes
# markup, or a command in a copyable line.  Links lead to the right file.  The
# test also uses a browser, a phone's screen size, and a token as the password.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Browser;
use Test::Xet::Process qw/ build_dir slurp /;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_base64 /;
use Encode qw/ decode encode /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $t = Test::Xet->new(Test::Xet::Table::hub(undef, <<'EOC'));

        xet_hub_expose on;

        location /hub/ {
            xet_hub on;
            xet_hub_base /hub;
            xet_auth token;
            xet_require_tls off;
            xet_api_base /cas;
        }

        location /pub/ {
            xet_hub on;
            xet_hub_base /pub;
            xet_hub_public on;
            xet_auth token;
            xet_require_tls off;
            xet_api_base /cas;
        }

        location /bare/ {
            xet_hub on;
            xet_hub_base /bare;
            xet_hub_pages off;
            xet_auth off;
            xet_api_base /cas;
        }

        location ~ ^/tok/(?<scope>\w+)/(?<subject>\w+)$ {
            xet_token;
            xet_token_scope $scope;
            xet_token_subject $subject;
        }
EOC

$t->token_key();
$t->run();

my %browser = (Accept => 'text/html,application/xhtml+xml,*/*;q=0.8');

# --------------------------------------------------------------------------
# an empty Hub

my $r = page('/');

is($r->{status}, 200, 'empty');
like($r->{body}, qr/No repositories\./, 'empty: says so');

my $first = 'HF_ENDPOINT=' . $t->url('') . ' HF_TOKEN=hf_any'
	. ' hf upload me/';

like($r->{body}, qr!>\Q${first}model .</code>!, 'empty: how the first comes');
like(page('/datasets')->{body},
	qr!>\Q${first}texts . --repo-type dataset</code>!,
	'empty: how the first dataset comes');
unlike(page('/?search=x')->{body}, qr/hf upload/, 'not what is searched for');

# --------------------------------------------------------------------------
# a repo with names that contain markup, commands, or special characters in URLs

my @odd = ('<script>alert(1)<b>.txt', q{a"onclick='x' b.txt},
	'a&amp;b.txt', "d/e/f g#?%41+;.bin", "uml\x{e4}ut \x{4e2d}.txt",
	"\x{202e}gpj.exe", "-rf", "d/\$(touch x)`id`'.txt", 'a^b"c');
my %data = map { $odd[$_] => "number $_\n" } 0 .. $#odd;

create(name => 'm', organization => 'me');

my $readme = "# Title <b>bold</b> & \"q\" 'x'\n<script>evil()</script>\n"
	. "</pre><img src=x>\n\x{4e2d}";
my $title = '<b>first</b> & "commit"';

is(commit('me/m', { summary => $title }, (map { inline($_, $data{$_}) } @odd),
	inline('README.md', encode('UTF-8', $readme)),
	inline('d/README.md', "of a folder\n"), inline('empty', ''))->{status},
	200, 'commit');

$r = page('/me/m');
is($r->{status}, 200, 'a repo');
is($r->header_value('Content-Type'), 'text/html; charset=utf-8', 'HTML');

my $html = clean($r, 'a repo');

like($html, qr!<h1>me/m</h1>!, 'its name');
like($html, qr!&lt;b&gt;first&lt;/b&gt; &amp; &quot;commit&quot;!,
	'the title of its commit, escaped');
like($html, qr!# Title &lt;b&gt;bold&lt;/b&gt; &amp; &quot;q&quot; &#39;x&#39;
&lt;script&gt;evil\(\)&lt;/script&gt;
&lt;/pre&gt;&lt;img src=x&gt;\n\x{4e2d}</pre>!, 'README.md, escaped');
like($html, qr!A model of 12 files!, 'how many files');
like($html, qr!<bdi>d</bdi>/</a>!, 'a folder');
unlike($html, qr!f g#!, 'nothing of what is in it');

# --------------------------------------------------------------------------
# links lead to each file, whatever its name

my %got;

for my $uri ('/me/m', '/me/m/tree/main/d', '/me/m/tree/main/d/e') {
	my $html = clean(page($uri), $uri);

	while ($html =~ m!href="([^"]*/resolve/[^"]*)"!g) {
		my $r = $t->get($1);

		is($r->{status}, 200, "link: $1");
		like($r->header_value('Content-Disposition') // '',
			qr/^attachment/, "link: $1: a download");
		$got{$r->{body}}++;
	}
}

is_deeply([ map { $got{$data{$_}} // 0 } @odd ], [ (1) x @odd ],
	'each file once');

like(clean(page('/me/m/tree/main/d'), 'a folder'), qr/>of a folder\n</,
	'a folder: its own README.md');

# the page of a file, at the URL that "hf upload" prints, and the page of a
# commit

my $oid = $t->get('/api/models/me/m')->json()->{sha};

$html = clean(page('/me/m/blob/main/' . escape($odd[0])), 'a file');
like($html, qr/number 0/, 'a file: its text');
unlike($html, qr/README/, 'a file: no other');

# the page of a file shows the same size, age and title as the page of its
# folder

my @alone = $html =~ /<td[ >]/g;
my @beside = clean(page('/me/m/tree/main/d/e'), 'a folder of one')
	=~ /<td[ >]/g;

is(scalar @alone, scalar @beside, 'a file: a row');

like(clean(page("/me/m/commit/$oid"), 'a commit'), qr/\Q$oid\E/,
	'a commit: its links have it');

# bytes that are not text

is(commit('me/m', {}, inline('bin', "a\0b"),
	inline('latin', "\xe9\xff<\x1b"))->{status}, 200, 'commit: bytes');
like(clean(page('/me/m/blob/main/bin'), 'bytes'), qr/Binary file, no preview/,
	'bytes are not shown');
like(clean(page('/me/m/blob/main/latin'), 'no UTF-8'),
	qr/>\x{fffd}\x{fffd}&lt;\x{fffd}</, 'what is no UTF-8 is replaced');

# a long text is truncated between characters

my $long = 'x' . "\x{e4}" x 40000;

is(commit('me/m', {}, inline('long', encode('UTF-8', $long)))->{status}, 200,
	'commit: a long text');
$html = clean(page('/me/m/blob/main/long'), 'long');
like($html, qr/>x\x{e4}{32767}</, 'long: 64 KiB of it');
like($html, qr/first 65,535 of 80,001 bytes/, 'long: says so');

# --------------------------------------------------------------------------
# copyable lines

my $base = $t->url('');

like($html = clean(page('/me/m'), 'lines'),
	qr/HF_ENDPOINT=\Q$base\E hf download me\/m</, 'hf');
like($html, qr/snapshot_download\(&quot;me\/m&quot;, endpoint=&quot;\Q$base\E/,
	'Python');
like($html, qr!curl -fLOJ \Q$base\E/me/m/resolve/main/README.md<!, 'curl');

# the name of a branch never becomes a command

my $branch = q{$(touch${IFS}here);'x'"y};

is($t->post('/api/models/me/m/branch/' . escape($branch, 1), \'{}',
	{ 'Content-Type' => 'application/json' })->{status}, 200, 'a branch');

$html = clean(page('/me/m/tree/' . escape($branch, 1)), 'a branch');

my ($line) = $html =~ m!<code>(HF_ENDPOINT.*)</code>!;

is(shell($line), join("\n", 'hf', qw/ download me\/m --revision /, $branch),
	'the shell takes it as a word');
ok(!-e $t->dir() . '/here', 'and runs nothing');

($line) = $html =~ m!\n(snapshot_download.*)</code>!;
is(python($line), $branch, 'so does Python');
like($html, qr!href="/me/m/tree/\Q@{[ escape($branch, 1) ]}\E"!,
	'it is in the list of branches');

$html = clean(page('/me/m/blob/main/' . escape($odd[7])), 'a file of commands');
($line) = $html =~ m!<code>(HF_ENDPOINT.*)</code>!;
is(shell($line), join("\n", 'hf', qw/ download me\/m -- /, $odd[7]),
	'a file: the shell takes it as a word');

# the copyable lines download the file

my $bin = build_dir() . '/clients/huggingface_hub/bin';

if (-x "$bin/hf") {
	my $home = $t->dir() . '/hf';
	my @lines = $html =~ m!<pre><code>(.*?)</code></pre>!gs;

	local $ENV{PATH} = "$bin:$ENV{PATH}";
	local $ENV{HF_HOME} = $home;
	local $ENV{HF_HUB_DISABLE_TELEMETRY} = 1;

	$t->write_file('hf.sh', encode('UTF-8', text($lines[0]) . "\n"));
	$t->write_file('hf.py', encode('UTF-8', text($lines[1]) . "\n"));
	mkdir($t->dir() . '/curl') or die $!;
	$t->write_file('curl.sh', encode('UTF-8', 'cd ' . $t->dir()
		. "/curl\n" . text($lines[2]) . "\n"));

	for my $run ('sh %s/hf.sh', "$bin/python %s/hf.py") {
		my $out = `@{[ sprintf($run, $t->dir()) ]} 2>&1`;

		is($?, 0, "$run: it ends well") or diag($out);

		my ($file) = glob("$home/hub/models--me--m/snapshots/*/d/*");

		is($file && slurp($file), $data{$odd[7]}, "$run: the file");
		system('rm', '-rf', $home);
	}

	is(system('sh ' . $t->dir() . '/curl.sh >/dev/null 2>&1'), 0,
		'curl: it ends well');
	is(join('', map { slurp($_) } glob($t->dir() . '/curl/*')),
		$data{$odd[7]}, 'curl: the file');

} else {
	diag('NO huggingface_hub: lines to copy were not run');
}

# --------------------------------------------------------------------------
# headers

$r = page('/me/m');

my ($style) = $r->{body} =~ m!<style>(.*?)</style>!s;

is($r->header_value('Content-Security-Policy'), "default-src 'none'; "
	. "style-src 'sha256-" . sha256_base64($style) . "='; "
	. "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	'the policy');
is($r->header_value('X-Content-Type-Options'), 'nosniff', 'nosniff');
is($r->header_value('Cache-Control'), 'private, no-cache', 'Cache-Control');
is($r->header_value('Vary'), 'Authorization', 'Vary');

my $h = $t->head('/me/m', { %browser });

is($h->{status}, 200, 'HEAD');
is($h->header_value('Content-Length'), length($r->{body}), 'HEAD: length');
is($h->header_value('ETag'), $r->header_value('ETag'), 'HEAD: ETag');

is(page('/me/m', 'If-None-Match' => $r->header_value('ETag'))->{status}, 304,
	'If-None-Match');
is(commit('me/m', {}, inline('new', '1'))->{status}, 200, 'a change');
is(page('/me/m', 'If-None-Match' => $r->header_value('ETag'))->{status}, 200,
	'a change is seen');

# --------------------------------------------------------------------------
# missing pages: a page for people, JSON for programs

for my $uri ('/me/no', '/nobody', '/me/m/tree/no', '/me/m/tree/main/no',
	'/a/b/c/d/e', '/favicon.ico', '/me/m/tree/main/%ff')
{
	$r = page($uri);
	is($r->{status}, 404, "$uri: 404");
	clean($r, $uri);
	is($r->header_value('Cache-Control'), 'no-store', "$uri: not kept");

	$r = $t->get($uri);
	is($r->{status}, 404, "$uri: 404 of a program");
	is(ref($r->json()), 'HASH', "$uri: JSON");
}

for my $uri ('/api/models/me/no', '/api/no', '/me/m/resolve/main/no') {
	is(ref(page($uri)->json()), 'HASH', "$uri: JSON for a browser, too");
}

is(page("/?$_")->{status}, 400, "?$_") for 'cursor=x', 'cursor=1/',
	'search=%ff', 'cursor=1/99999999999999999999', 'search=%00';
is(page('/me/m?cursor=../x')->{status}, 400, 'a cursor that is no path');
is($t->post('/me/m', 'x')->{status}, 404, 'POST');

# search, and its limits

like(clean(page('/?search=ME%2FM'), 'search'), qr!href="/me/m"!, 'found');
$html = clean(page('/?search=%22%3E%3Cscript%3E%25_'), 'search: markup');
unlike($html, qr!href="/me/m"!, 'not found');
like($html, qr!value="&quot;&gt;&lt;script&gt;%_"!, 'what was searched for');

# a repo that was moved

is($t->post('/api/repos/move', \'{"fromRepo":"me/m","toRepo":"me/moved"}',
	{ 'Content-Type' => 'application/json' })->{status}, 200, 'move');
$r = page('/me/m/tree/main/d');
is($r->{status}, 307, 'moved');
like($r->header_value('Location'), qr!/me/moved/tree/main/d$!,
	'moved: to where it is');

# --------------------------------------------------------------------------
# lists in several pages

$t->sql(q{SELECT count(x.status) FROM generate_series(1, 405) n,
	LATERAL xet.hub_create(
	ROW(n % 3, 'many', 'r' || n, true, '{}', true, ''),
	false, 'many', decode(md5('r' || n), 'hex')) x});

my %seen;
my $uri = '/many';
my $pages = 0;

while (defined $uri) {
	my $html = clean(page($uri), "page $pages");

	$seen{$1}++ while $html =~ m!<th scope="row"><a href="([^"]+)"!g;
	($uri) = $html =~ m!rel="next" href="([^"]+)"!;
	$uri = "/many$uri" if defined $uri;
	$uri =~ s/&amp;/&/g if defined $uri;
	last if ++$pages > 5;
}

is($pages, 3, 'three pages');
is_deeply([ sort { $a <=> $b } map { m!/r(\d+)$! ? $1 : 0 } keys %seen ],
	[ 1 .. 405 ], 'all repos');
is(scalar(grep { $_ > 1 } values %seen), 0, 'each once');

is(commit('many/r3', {}, map { inline(sprintf('f%03d', $_), '') } 1 .. 205)
	->{status}, 200, 'commit: many files');
$html = clean(page('/many/r3'), 'many files');
is(scalar(() = $html =~ /<th scope="row">/g), 200, 'many files: a page');
($uri) = $html =~ m!rel="next" href="([^"]+)"!;
$html = clean(page("/many/r3$uri"), 'many files: the next page');
is(join(' ', $html =~ m!<bdi>(f\d+)</bdi></a>!g), 'f201 f202 f203 f204 f205',
	'many files: the rest');

# by kind

like(clean(page('/datasets'), 'datasets'), qr!href="/datasets/many/r1"!,
	'datasets');
unlike(page('/datasets')->{body}, qr!href="/many/r3"!, 'no models');

# --------------------------------------------------------------------------
# buckets

is($t->post('/api/buckets/me/b', \'{}',
	{ 'Content-Type' => 'application/json' })->{status}, 200, 'a bucket');
like(clean(page('/buckets'), 'buckets'), qr!href="/buckets/me/b"!, 'buckets');
$html = clean(page('/buckets/me/b'), 'a bucket');
like($html, qr!hf buckets sync hf://buckets/me/b ./b<!, 'a bucket: hf');
is(page('/buckets/me/b/tree/no')->{status}, 404, 'a bucket: no folder');

# --------------------------------------------------------------------------
# access

create(name => 'secret', organization => 'alice', private => JSON::PP::true);
create(name => 'open', organization => 'alice');
create(name => 'secret', organization => 'carol', private => JSON::PP::true);
is(commit('alice/secret', {}, inline('hidden.txt', 'hidden'))->{status}, 200,
	'a private repo');

my %token = map { $_ => $t->get("/tok/read/$_")->json()->{accessToken} }
	qw/ alice bob /;

for my $uri ('/', '/models', '/alice', '/?search=alice', '/?search=secret')
{
	my $alice = page("/hub$uri", as('alice'));
	my $bob = page("/hub$uri", as('bob'));

	is($alice->{status}, 200, "$uri: alice");
	like(clean($alice, "$uri: alice"), qr!href="/hub/alice/secret"!,
		"$uri: alice sees hers");
	unlike($alice->{body}, qr!carol/secret!, "$uri: and no other");
	is($bob->{status}, 200, "$uri: bob");
	unlike(clean($bob, "$uri: bob"), qr!href="[^"]*secret!,
		"$uri: bob does not");
	unlike(page("/pub$uri")->{body}, qr!href="[^"]*secret!,
		"$uri: nor does anybody");
}

# a private repo, and an owner who has only private repos, look like missing
# ones

for ([ '/bob/no', '/alice/secret' ], [ '/nobody', '/carol' ],
	[ '/alice/no/tree/main', '/alice/secret/tree/main' ])
{
	my ($no, $there) = map { page("/hub$_", as('bob')) } @$_;

	is($there->{status}, 404, "$_->[1]: 404");
	is($there->{body}, $no->{body}, "$_->[1]: as $_->[0]");
}

is(page('/hub/alice/secret', as('alice'))->{status}, 200, 'alice opens hers');
is(page('/hub/bob', as('bob'))->{status}, 200, 'bob has an empty page');

# --------------------------------------------------------------------------
# 401: a browser asks for a password, a client learns that a token is needed

for my $uri ('/', '/alice', '/alice/open', '/nobody',
	'/alice/open/resolve/main/x')
{
	$r = page("/hub$uri");
	is($r->{status}, 401, "$uri: 401");
	is($r->header_value('WWW-Authenticate'),
		'Basic realm="xet", charset="UTF-8"', "$uri: a browser");
}

clean(page('/hub/'), '401');
is(page('/hub/', Authorization => 'Basic ' . encode_base64('a:bad', ''))
	->header_value('WWW-Authenticate'),
	'Basic realm="xet", charset="UTF-8"', 'a token that is none');

for my $uri ('/api/models', '/alice/open/resolve/main/x') {
	is($t->get("/hub$uri")->header_value('WWW-Authenticate'),
		'Bearer realm="xet"', "$uri: a client");
}

is(page('/hub/api/models')->header_value('WWW-Authenticate'),
	'Bearer realm="xet"', 'the API, to a browser');

$r = page('/pub/');
is($r->{status}, 200, 'public');
like($r->{body}, qr!href="/pub/\?sign-in=1"!, 'public: one may sign in');
is(page('/pub/?sign-in=1')->{status}, 401, 'public: to sign in');
is(page('/pub/?sign-in=1', as('alice'))->{status}, 200, 'public: signed in');

# --------------------------------------------------------------------------
# xet_hub_pages off

is(page('/bare/')->{status}, 404, 'xet_hub_pages off');
is(ref(page('/bare/me/moved')->json()), 'HASH', 'xet_hub_pages off: JSON');
is($t->get('/bare/api/models/many/r3')->{status}, 200,
	'xet_hub_pages off: the API');

# --------------------------------------------------------------------------
# in a browser

my $b = Test::Xet::Browser->new();

if ($b) {
	browse();
	$b->close();

} else {
	diag('NO chromium: the pages were not looked at');
}

# --------------------------------------------------------------------------
# a text that can't be read from the store

is(commit('alice/open', {}, inline('README.md', 'x' x 100))->{status}, 200,
	'commit: a text');
$t->remove_copy($_) for grep { m!^xorbs/! } $t->store_names();
$t->allow(qr/xet: chunk 0 of xorb \S+ can't be read/);
$t->allow(qr/xet: a page was sent without the text of "README.md"/);

$r = page('/alice/open');

like(clean($r, 'no text'), qr/This file is not available now/, 'no text: told');
like($r->{body}, qr!resolve/main/README\.md"!, 'no text: the rest is there');

# --------------------------------------------------------------------------
# no database

$t->allow(qr/connecting to PostgreSQL failed|terminating connection/);
$t->allow(qr/failed, SQLSTATE|did not respond|503 database_away/);
$t->pg_stop();

for my $uri ('/', '/alice/open') {
	ok(wait_for(30, sub { ($r = page($uri))->{status} == 503 }),
		"no database: $uri");
	like(clean($r, "no database: $uri"), qr/Try again later/,
		"no database: $uri: says so");
}

$t->pg_start();
ok(wait_for(30, sub { page('/')->{status} == 200 }), 'it is back');

$t->done();

# --------------------------------------------------------------------------

sub browse {
	my $shot = build_dir() . '/hub';
	my $down = $t->dir() . '/down';

	is(commit('me/moved', {}, inline('w' x 250, ''),
		inline(('long-' x 40) . '.txt', ''))->{status}, 200,
		'commit: long names');
	mkdir($down) or die $!;
	$b->call('Page.setDownloadBehavior', { behavior => 'allow',
		downloadPath => $down });

	# the page loads nothing from other URLs, and the browser blocks nothing

	for my $uri ('/', '/me', '/me/moved', '/me/moved/tree/main/d',
		'/buckets/me/b', '/me/no')
	{
		$b->size(360, 740);
		$b->open($t->url($uri));

		my @urls = grep { !m!/favicon\.ico$! }
			map { $_->{request}{url} }
			$b->events('Network.requestWillBeSent');

		is("@urls", $t->url($uri), "$uri: nothing else is loaded");

		my @log = grep { !/favicon|status of 404/ }
			map { $_->{entry}{text} } $b->events('Log.entryAdded');

		is("@log", '', "$uri: nothing is refused");
		isnt($b->js('getComputedStyle(document.body).maxWidth'), 'none',
			"$uri: with its style");

		# a phone, and text of twice the size

		for my $width (360, 320) {
			$b->size($width, 640);
			cmp_ok(width(), '<=', $width,
				"$uri: $width pixels: no scrolling sideways");
			is($b->js('innerWidth'), $width,
				"$uri: $width pixels: the width of the page");
		}

		$b->js('document.documentElement.style.fontSize = "200%"');
		cmp_ok(width(), '<=', 320, "$uri: large letters: the same");

		readers($uri);
	}

	# screenshots of the complete page, in light and dark colours

	$b->size(1200, 900);
	$b->open($t->url('/me/moved'));
	$b->screenshot("$shot-wide.png");
	$b->js('document.querySelector("details").open = true');

	for my $scheme (qw/ light dark /) {
		$b->call('Emulation.setEmulatedMedia', { features => [ {
			name => 'prefers-color-scheme', value => $scheme } ] });
		cmp_ok($b->contrast(), '>=', 4.5, "$scheme: contrast");
		$b->screenshot("$shot-$scheme.png");
	}

	# every element that the keyboard focuses shows the focus

	for my $n (1 .. 12) {
		$b->key('Tab');
		is($b->js('getComputedStyle(document.activeElement)
			.outlineStyle'), 'solid', "Tab $n: shows where it is");
	}

	# a search by typing

	$b->open($t->url('/'));
	$b->js('document.getElementById("search").value = "me/mov"');
	click('button');
	ok(wait_for(30, sub { (eval { $b->js('location.search
		+ document.querySelectorAll("tbody tr").length') } // '')
		eq '?search=me%2Fmov1' }), 'a search: its URL');

	# a download by a click

	$b->open($t->url('/me/moved/tree/main/d/e'));
	click('a[href*="/resolve/"]');
	is(downloaded($down), $data{$odd[3]}, 'a click downloads the file');

	# a token as the password, entered once

	my $page = $t->url('/hub/alice/secret/tree/main');

	$b->open($page =~ s!//!//any:$token{alice}\@!r);
	is($b->js('document.querySelector("h1").textContent'),
		'alice/secret (private)', 'a page, with a password');
	click('a[href*="/resolve/"]');
	is(downloaded($down), 'hidden', 'its file, with the same password');

	$b->open($t->url('/hub/alice'));
	is($b->js('document.querySelector("h1").textContent'), 'alice',
		'another page, with the same password');
}

# Clicks after the script has returned, because a click may open another page.

sub click {
	my ($selector) = @_;

	$b->js("setTimeout(() =>
		document.querySelector(`$selector`).click(), 0)");
}

# Waits for a downloaded file, and returns its contents.  Deletes the file.

sub downloaded {
	my ($down) = @_;

	my ($file, $data);

	wait_for(30, sub {
		($file) = grep { !/\.crdownload$|com\.google|\.org\.chromium/ }
			glob("$down/*");
		$data = $file && -s $file ? slurp($file) : undef;

		return defined $data;
	});

	unlink($file) if $file;

	return $data;
}

sub width { return $b->js('document.documentElement.scrollWidth') }

# Checks what a screen reader needs: landmarks, one title, names of links, and
# tables with headers; also at a phone's size.

sub readers {
	my ($uri) = @_;

	my %roles = $b->roles();

	is(scalar(@{ $roles{$_} || [] }), 1, "$uri: a landmark: $_")
		for qw/ banner main contentinfo /;
	is($b->js('document.documentElement.lang'), 'en', "$uri: a language");
	isnt($b->js('document.title'), '', "$uri: a title");
	is($b->js('document.querySelectorAll("h1").length'), 1, "$uri: one h1");
	is(scalar(grep { $_ eq '' } @{ $roles{link} }), 0,
		"$uri: links have names");
	is($b->js('[...document.querySelectorAll("nav")].filter((e) =>
		!e.ariaLabel).length'), 0, "$uri: so has each navigation");
	is($b->js('[...document.querySelectorAll("th")].filter((e) =>
		!e.scope).length'), 0, "$uri: heads of tables have a scope");
	is($b->js('[...document.querySelectorAll("input")].filter((e) =>
		!e.labels.length).length'), 0, "$uri: fields have labels");

	if ($b->js('document.querySelectorAll("table").length')) {
		cmp_ok(scalar(@{ $roles{rowheader} || [] }), '>', 0,
			"$uri: the table is one on a phone, too");
	}
}

sub page {
	my ($uri, %headers) = @_;

	return $t->get($uri, { %browser, %headers });
}

# Returns a token as a browser sends it.

sub as {
	my ($who) = @_;

	return (Authorization => 'Basic '
		. encode_base64("any:$token{$who}", ''));
}

# Returns the body of a page.  Checks that it is well-formed, and that its only
# markup is the module's.

sub clean {
	my ($r, $name) = @_;

	my $html = eval { decode('UTF-8', $r->{body},
		Encode::FB_CROAK | Encode::LEAVE_SRC) };

	ok(defined $html, "$name: UTF-8");

	my $body = $html // '';
	my @bad;

	$body =~ s!<style>.*?</style>!!s;

	my %ours = map { $_ => 1 } qw/ html head meta title body header footer
		main a nav ul ol li h1 h2 h3 p form label input button table
		caption thead tbody tr th td time details summary bdi pre
		code /;

	while ($body =~ m/<([^>]*)>/g) {
		my $tag = $1;

		next if $tag eq '!DOCTYPE html';

		$tag =~ m!^/?([a-z0-9]+)((?:\s+[a-z-]+(?:="[^"<>]*")?)*)$!
			or do { push @bad, $tag; next };

		my ($element, $attributes) = ($1, $2);

		push @bad, $tag if !$ours{$element}
			|| $attributes =~ /\s(?:on\w+|style|src)=/
			|| $attributes =~ /href="(?![\/?#])/;
	}

	is(join(' ', @bad), '', "$name: no markup of others");
	unlike($body, qr/<script|javascript:/i, "$name: no script");
	is(scalar(() = $body =~ /<h1>/g), 1, "$name: one h1");

	return $html // '';
}

# Returns the words into which a shell splits a line, one word per line.

sub shell {
	my ($line) = @_;

	$line = text($line);
	$line =~ s/^(HF_ENDPOINT=\S+) hf /printf '%s\\n' hf /
		or return "no line: $line";

	my $dir = $t->dir();

	$t->write_file('line.sh', encode('UTF-8', "cd $dir\n$line\n"));
	chomp(my $out = `sh $dir/line.sh`);

	return decode('UTF-8', $out);
}

# Returns the revision in a call of the Python library.

sub python {
	my ($line) = @_;

	$t->write_file('line.py', encode('UTF-8',
		"def snapshot_download(repo, revision, endpoint):\n"
		. "    print(revision)\n" . text($line) . "\n"));
	chomp(my $out = `python3 @{[ $t->dir() ]}/line.py`);

	return $out;
}

sub text {
	my ($html) = @_;

	my %c = (lt => '<', gt => '>', quot => '"', '#39' => "'", amp => '&');

	return $html =~ s/&([a-z]+|#39);/$c{$1}/gr;
}

sub create {
	my (%o) = @_;

	my $r = $t->post('/api/repos/create', \JSON::PP::encode_json(\%o),
		{ 'Content-Type' => 'application/json' });

	die $r->summary() if $r->{status} != 200;
}

sub commit {
	my ($repo, $header, @lines) = @_;

	$header->{summary} //= 'a commit';

	my $body = join("\n", map { JSON::PP::encode_json($_) }
		{ key => 'header', value => $header }, @lines);

	return $t->post("/api/models/$repo/commit/main", \$body,
		{ 'Content-Type' => 'application/x-ndjson' });
}

sub inline {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64', content => encode_base64($data, '') } };
}

sub escape {
	my ($path, $all) = @_;

	$path = encode('UTF-8', $path);
	$path =~ s!([^A-Za-z0-9._~/-])!sprintf('%%%02X', ord($1))!ge;
	$path =~ s!/!%2F!g if $all;

	return $path;
}

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The status page: its figures with and without JavaScript, and the resources
# that it may load.  The page is usable on a phone, by keyboard, with a screen
# reader and in dark mode.  Client input never becomes markup.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Browser;
use Test::Xet::Process qw/ build_dir /;

my $t = Test::Xet->new(log => 'info', directives => { xet_url_base => undef },
	locations => <<'EOC');
xet_auth off;
location /api/ { xet_api; }
location = /metrics { xet_metrics; }
location = /status { xet_status; xet_hosts *; }
location = /based { xet_status; xet_hosts *;
	xet_url_base https://cas.example.com/x; }
EOC

$t->run();

my $file = $t->upload(mix(1, 300000));

# figures appear after the first request for them

ok(wait_for(40, sub { ($t->get('/status?format=json')->json()
	->{text}{files} // '') eq '1' }), 'a file is counted');

# --------------------------------------------------------------------------
# the response

my $r = $t->get('/status');

is($r->{status}, 200, 'there is a page');
is($r->header_value('Content-Type'), 'text/html; charset=utf-8', 'HTML');
is($r->header_value('Cache-Control'), 'no-store', 'nobody keeps it');

my $policy = $r->header_value('Content-Security-Policy') // '';
my ($nonce) = $policy =~ /script-src 'nonce-([0-9a-f]{32})';/;

like($policy, qr/^default-src 'none';/, 'its policy: nothing else');
unlike($policy, qr/unsafe|\*|http/, 'its policy: nobody else');
is(scalar(() = $r->{body} =~ /nonce="$nonce"/g), 2, 'its style and script');
unlike($r->{body}, qr/\{\{|\}\}/, 'all is filled in');
unlike($r->{body}, qr/<[^>]*\s(?:on\w+|style)=/, 'nothing that is not allowed');
unlike($r->{body}, qr!(?:src|href)=!, 'nothing to load');

my $other = $t->get('/status')->header_value('Content-Security-Policy');

isnt($other, $policy, 'a nonce is used once');

is($t->head('/status')->{status}, 200, 'HEAD');
is($t->post('/status', 'x')->{status}, 405, 'POST');
is($t->get('/status?format=prometheus')->{status}, 400,
	'no format of Prometheus');
like($t->get('/based')->{body}, qr!value="https://cas.example.com/x/api"!,
	'the endpoint that is configured');

# --------------------------------------------------------------------------
# the only client input on the page is the Host header

for my $host ('a"><script>evil()', q{a'onclick='evil()}, '<img>', 'a&lt;b') {
	my $c = $t->connect();

	$c->send("GET /status HTTP/1.0\r\nHost: $host\r\n\r\n");

	my $r = $c->response('GET');

	is($r->{status}, 200, "Host: $host: a page");
	unlike($r->{body}, qr/<script>evil|<img|'onclick='|a&lt;b"/,
		"Host: $host");
	$c->close();
}

# --------------------------------------------------------------------------
# in a browser

my $b = Test::Xet::Browser->new();

if (!$b) {
	diag('NO chromium: the page was not looked at');
	$t->done();
	exit;
}

sub text {
	return $b->js(qq/document.querySelector('[data-text="$_[0]"]')
		.textContent/);
}

# without JavaScript: the figures that the server has inserted

$b->call('Emulation.setScriptExecutionDisabled', { value => \1 });
$b->open($t->url('/status'));
is(text('files'), '1', 'no script: files');
is(text('file_bytes'), '300.0 kB', 'no script: bytes');
is(text('postgres'), 'PostgreSQL responds.', 'no script: health');
is($b->js('document.getElementById("copy").hidden'), 1,
	'no script: no button that does nothing');
$b->call('Emulation.setScriptExecutionDisabled', { value => \0 });

# with JavaScript: live figures

my $shot = build_dir() . '/status';

$b->size(1200, 900);
$b->open($t->url('/status'));
is($b->js('document.title'), 'Xet store', 'a title');
is($b->js('document.documentElement.lang'), 'en', 'a language');

my $requests = text('requests');

$t->get('/api/health/live') for 1 .. 7;

ok(wait_for(30, sub { text('requests') == $requests + 7 }), 'live');

$b->screenshot("$shot-wide.png");
cmp_ok(-s "$shot-wide.png", '>', 10000, "a picture: $shot-wide.png");

# the URLs that the page has loaded, and those that the policy has blocked

my @urls = map { $_->{request}{url} } $b->events('Network.requestWillBeSent');
my $base = $t->url('/status');

is(join(' ', grep { $_ !~ m!^\Q$base\E(?:\?format=json)?$! } @urls), '',
	'nothing else is loaded');

my @log = map { $_->{entry}{text} } $b->events('Log.entryAdded');

is(join("\n", grep { !/favicon/ } @log), '', 'nothing is refused');

# PostgreSQL is down: shown in words, not only by colour

$t->allow(qr/connecting to PostgreSQL failed|terminating connection/);
$t->allow(qr/failed, SQLSTATE|did not respond/);
$t->pg_stop();
ok(wait_for(40, sub { text('postgres') =~ /does not respond/ }),
	'PostgreSQL is away');
is($b->js(q{document.querySelector('[data-part="postgres"]').dataset.state}),
	'bad', 'and marked');
is(text('summary'), '1 of the checks below needs attention.', 'a summary');
is($b->js(q{getComputedStyle(document.querySelector(
	'[data-part="postgres"]'), '::before').content}),
	qq{"\x{2717}" / ""}, 'a mark that is no colour');
$b->screenshot("$shot-bad.png");
$t->pg_start();
ok(wait_for(40, sub { text('summary') eq 'All checks passed.' }), 'it is back');

# the server is down

$t->stop();
ok(wait_for(30, sub { $b->js('document.getElementById("stale").textContent')
	=~ /does not respond/ }), 'no server');
is(text('files'), '1', 'no server: the last figures');
$t->run();
ok(wait_for(30, sub { $b->js('document.getElementById("stale").textContent')
	eq '' }), 'the server is back');

# --------------------------------------------------------------------------
# a phone, and text twice as large

for ([ 360, 740 ], [ 320, 568 ]) {
	$b->size(@$_);
	$b->open($t->url('/status'));
	cmp_ok($b->js('document.documentElement.scrollWidth'), '<=', $_->[0],
		"$_->[0] pixels: no scrolling sideways");
	cmp_ok($b->js('window.innerWidth'), '==', $_->[0],
		"$_->[0] pixels: the width of the page");
}

$b->size(360, 740);
$b->screenshot("$shot-phone.png");
$b->js('document.documentElement.style.fontSize = "200%"');
cmp_ok($b->js('document.documentElement.scrollWidth'), '<=', 360,
	'large letters: no scrolling sideways');

my @small = @{ $b->js(q{[...document.querySelectorAll('button, input')]
	.map((e) => e.getBoundingClientRect().height)}) };

is(scalar(grep { $_ < 44 } @small), 0, 'large enough for a finger');

# --------------------------------------------------------------------------
# keyboard

$b->size(1200, 900);
$b->open($t->url('/status'));

my @focus;

for (1 .. 2) {
	$b->key('Tab');
	push @focus, $b->js('document.activeElement.id');

	my $outline = $b->js('getComputedStyle(document.activeElement)
		.outlineStyle');

	is($outline, 'solid', "Tab: $focus[-1] shows that it is there");
}

is("@focus", 'endpoint copy', 'Tab: the order');
$b->key('Enter');
ok(wait_for(10, sub { $b->js('document.getElementById("copied").textContent')
	eq 'Copied.' }), 'Enter copies, and says so');
is($b->js('getSelection().toString()'), $t->url('/api'),
	'the endpoint is selected');

# --------------------------------------------------------------------------
# a screen reader

my %roles = $b->roles();

is(scalar(@{ $roles{$_} || [] }), 1, "a landmark: $_")
	for qw/ banner main contentinfo /;
is_deeply($roles{region},
	[ qw/ Health Endpoint Stored Traffic /, 'Background jobs' ],
	'regions with names');
is_deeply($roles{heading}, [ 'Xet store', @{ $roles{region} } ], 'headings');
is_deeply($roles{button}, [ 'Copy' ], 'a button with a name');
is_deeply($roles{textbox}, [ 'Endpoint for clients' ],
	'a field with a name');
is($b->js(q{document.querySelector('header [role="status"]').ariaLive}),
	'polite', 'the summary is read when it changes');

# a screen reader does not read out figures that change all the time

is($b->js(q{document.querySelectorAll('main [aria-live], main dl [role]')
	.length}), 0, 'and figures are not');

# --------------------------------------------------------------------------
# light and dark: contrast of all text, by WCAG 2 (AA)

my %ground;

for my $scheme (qw/ light dark /) {
	$b->call('Emulation.setEmulatedMedia', { features => [
		{ name => 'prefers-color-scheme', value => $scheme },
		{ name => 'prefers-reduced-motion', value => 'reduce' } ] });
	$ground{$scheme} = $b->js('getComputedStyle(document.body)
		.backgroundColor');
	cmp_ok($b->contrast(), '>=', 4.5, "$scheme: contrast");
}

isnt($ground{light}, $ground{dark}, 'dark is another colour');
is($b->js('getComputedStyle(document.getElementById("copy"))
	.transitionDuration'), '0s', 'nothing moves for who wants that');
$b->screenshot("$shot-dark.png");

$b->close();
$t->done();

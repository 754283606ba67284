package Test::Xet::Pages;

# Copyright (C) the ngx_http_xet_module authors

# A server with the shipped configuration, tokens, and a browser, for tests of
# the web pages:
#
#     start_pages();
#     create('model', 1);
#     commit('model', 'first', 'a.txt' => "a\n");
#
#     if ($web) {
#         look('/alice/model', 'card');
#         press('main button', 'Delete');
#         shows(qr/really/, 'it asks');
#     }
#
# $t is the server, $web the browser, undef without Chromium, %token has a token
# of alice for each scope, and %alice the header with the strongest of them.

use warnings;
use strict;

use parent 'Exporter';

use Test::More;

use Test::Xet;
use Test::Xet::Browser;
use Test::Xet::Process qw/ build_dir slurp wait_for /;
use Test::Xet::Real;
use Test::Xet::Repo;

our @EXPORT = qw/ $t $web %token %alice start_pages visit ready text press set
	shows look create commit /;

our ($t, $web, %token, %alice);

my $axe = Test::Xet::Real::build() . '/npm/node_modules/axe-core/axe.min.js';

sub start_pages {
	$t = Test::Xet->new();

	my $conf = $t->shipped_conf();

	$conf =~ s/xet_auth off;/xet_auth token; xet_require_tls off;
        xet_hub_public on;
        location ~ ^\/tok\/(?<scope>\\w+)\/(?<subject>\\w+)\$ {
            xet_token;
            xet_token_scope \$scope;
            xet_token_subject \$subject;
        }/ or die;

	$t->write_conf($conf);
	$t->run();

	%token = map { $_ => $t->get("/tok/$_/alice")->json()->{accessToken} }
		qw/ read write admin /;
	%alice = (Authorization => "Bearer $token{admin}");
	$web = Test::Xet::Browser->new();
}

# Opens a page, and waits until it has replaced the grey lines.

sub visit {
	my ($uri) = @_;

	$web->open($t->url($uri));
	ready($uri);
}

sub ready {
	my ($name) = @_;

	ok(wait_for(30, sub { $web->js('!!document.querySelector("main > *")'
		. ' && !document.querySelector("main [aria-busy]")') }),
		"$name: is complete")
		or diag($web->js('document.querySelector("main").innerHTML'));
}

# A page that is just loaded anew has no context for scripts.

sub text {
	return eval { $web->js('document.querySelector("main").innerText') };
}

# Clicks the first element of a selector whose text or label matches.

sub press {
	my ($selector, $words) = @_;

	my ($s, $w) = map { JSON::PP->new()->allow_nonref()->encode($_) }
		$selector, $words // '';
	my $done;

	wait_for(20, sub { $done = $web->js("(() => { const node =
		[...document.querySelectorAll($s)].find((one) =>
		(one.innerText + ' ' + (one.ariaLabel || '')).includes($w));
		if (!node || node.disabled) return false;
		setTimeout(() => node.click(), 0); return true; })()") });

	ok($done, "press $selector" . (defined $words ? " \"$words\"" : ''));
}

sub set {
	my ($selector, $value) = @_;

	my ($s, $v) = map { JSON::PP->new()->allow_nonref()->encode($_) }
		$selector, $value;

	ok(wait_for(20, sub { $web->js("(() => { const node =
		document.querySelector($s); if (!node) return false;
		node.focus(); node.value = $v;
		node.dispatchEvent(new Event('input', { bubbles: true }));
		node.dispatchEvent(new Event('change', { bubbles: true }));
		return true; })()") }), "set $selector");
}

sub shows {
	my ($pattern, $name) = @_;

	my $seen = '';

	ok(wait_for(30, sub { ($seen = text() // '') =~ $pattern }), $name)
		or diag($seen);
}

# Checks a page at two sizes and in both colours.

sub look {
	my ($uri, $name) = @_;

	visit($uri);

	for my $width (1280, 390) {
		$web->size($width, 900);
		cmp_ok($web->js('document.documentElement.scrollWidth'), '<=',
			$width, "$uri: $width: no scrolling sideways");

		for my $scheme (qw/ light dark /) {
			$web->call('Emulation.setEmulatedMedia', { features => [
				{ name => 'prefers-color-scheme',
				value => $scheme } ] });
			faults("$uri: $width: $scheme");
			$web->screenshot(build_dir()
				. "/web-$name-$width-$scheme.png");
		}
	}

	$web->size(1280, 900);
	is($web->js('document.title') =~ /evil/ ? 1 : 0, 0,
		"$uri: no script of a user");

	my @foreign = grep { !m!^\Q@{[ $t->url('/') ]}\E|^(?:blob|data):! }
		map { $_->{request}{url} }
		$web->events('Network.requestWillBeSent');

	is("@foreign", '', "$uri: nothing of another host");

	my @log = grep { !/favicon|purify\.js|status of 40[14]/ }
		map { "$_->{entry}{text} $_->{entry}{url}" }
		$web->events('Log.entryAdded');

	is("@log", '', "$uri: nothing in the log of the browser");
}

# What axe calls serious or critical.

sub faults {
	my ($name) = @_;

	-f $axe or die "$axe is missing";

	$web->js(slurp($axe) . '; 1')
		unless $web->js('typeof axe === "object"');

	is($web->js('axe.run(document, { resultTypes: ["violations"] })
		.then((r) => r.violations
		.filter((v) => /serious|critical/.test(v.impact))
		.map((v) => v.id + ": " + v.nodes[0].html + " "
			+ v.nodes[0].failureSummary).join("\n"))'), '',
		"$name: axe");
}

sub create {
	my ($name, $private) = @_;

	create_repo($t, { name => $name, private => $private ? \1 : \0 },
		\%alice);
}

sub commit {
	my ($name, $title, %files) = @_;

	commit_files($t, "alice/$name", $title, \%files, \%alice);
}

1;

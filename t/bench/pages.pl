#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures the web pages in Chromium, with the shipped configuration: the time
# from the navigation until the browser paints the first content, and until the
# page is complete, with an empty cache, and again with what the browser
# remembers.  The limit is a page of one word that needs no server.
#
#     perl t/bench/pages.pl
#
# Needs "make build tools cli" and chromium.  Takes a minute.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use Test::More;

use Test::Xet;
use Test::Xet::Pages;

my $repeats = repeats(7);

need('chromium', 'chromium');
bench_start('web pages in Chromium, in milliseconds', pin => 0);

Test::More->builder->output('/dev/null');
Test::More->builder->no_ending(1);

start_pages();

create('model', 0);
commit('model', "commit $_", 'README.md' => "---\nlicense: mit\n---\n# Model\n"
	. "A line of $_ *words*.\n\n" x 50, map { ("d/file-$_.txt" =>
	"$_ line\n" x 100, "code-$_.py" => "def f(x):\n    return x\n" x 50) }
	$_ .. $_ + 20) for 1 .. choose(30, 2);

my @pages = ([ home => '/' ], [ owner => '/alice' ], [ card => '/alice/model' ],
	[ files => '/alice/model/tree/main' ],
	[ file => '/alice/model/blob/main/code-2.py' ],
	[ history => '/alice/model/commits/main' ],
	[ commit => '/alice/model/commit/main' ],
	[ status => '/status' ],
	[ 'one word' => 'data:text/html,<main><p>word</main>' ]);

# "xetComplete" is the time at which no part of the page is grey any more

$web->call('Page.addScriptToEvaluateOnNewDocument', { source => <<'EOF_JS' });
(() => {
    const look = () => {
        if (document.querySelector("main > *")
            && !document.querySelector("main [aria-busy]"))
        {
            window.xetComplete = performance.now();

        } else {
            requestAnimationFrame(look);
        }
    };

    requestAnimationFrame(look);
})();
EOF_JS

my %m;

for my $turn (1 .. $repeats) {
	for my $page (@pages) {
		my ($name, $uri) = @$page;

		$web->call('Network.clearBrowserCache');
		measure("$name, empty cache", $uri);
		measure("$name, again", $uri);
	}
}

bench_heading("median (least..most) of $repeats visits");
bench_table([ 'page', 'first content', 'complete' ], map {
	my $page = $_->[0];

	map {
		my ($first, $complete) = @{ $m{"$page, $_"} }{qw/ first complete /};

		bench_row("$page, $_: first content", $first, 'ms', undef, undef,
			300, 'less');

		[ "$page, $_", spread(@$first), spread(@$complete) ];
	} 'empty cache', 'again';
} @pages);

bench_end($t);

sub measure {
	my ($name, $uri) = @_;

	$web->open('about:blank');

	if ($uri =~ /^data:/) {
		$web->open($uri);
	} else {
		visit($uri);
	}

	my $at = $web->js('new Promise((resolve) => { const look = () => {
		const paint = performance.getEntriesByName(
			"first-contentful-paint")[0];
		if (paint && window.xetComplete)
			resolve([paint.startTime, window.xetComplete]);
		else requestAnimationFrame(look); }; look(); })');

	push @{ $m{$name}{first} }, $at->[0];
	push @{ $m{$name}{complete} }, $at->[1];
}

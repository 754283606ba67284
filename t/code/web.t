#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The web pages: their imports, what a page loads, no function that parses HTML,
# and their parsers of files in Node, by the tests in t/web.

use warnings;
use strict;

use Test::More;

use Compress::Zlib ();
use File::Basename qw/ dirname /;
use File::Temp qw/ tempdir /;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Process qw/ root run_command slurp /;
use Test::Xet::Real;

my $root = root();
my $node = Test::Xet::Real::node_program();

# --------------------------------------------------------------------------
# each module that is imported exists

my @files = map { substr($_, length("$root/src/web/")) }
	grep { /\.js\z/ } glob("$root/src/web/*"), glob("$root/src/web/*/*");

cmp_ok(scalar @files, '>', 30, 'modules');

for my $file (@files) {
	my $text = slurp("$root/src/web/$file");
	my ($folder) = $file =~ m!^(.*/)?!;
	my @missing;

	while ($text =~ /\b(?:from|import)\s*\(?\s*"(\.[^"]*)"/g) {
		my $path = ($folder // '') . $1;

		1 while $path =~ s!(^|/)\./!$1! || $path =~ s![^/.]+/\.\./!!;
		push @missing, $path unless -f "$root/src/web/$path";
	}

	is("@missing", '', "$file: what it imports");
	unlike($text, qr/innerHTML|outerHTML|insertAdjacentHTML|\beval\(|
		document\.write/x, "$file: makes no HTML of strings");
}

# --------------------------------------------------------------------------
# a page loads at most 100 kB before highlighting: itself, its styles, and the
# modules that are imported without a condition

my $web = tempdir(CLEANUP => 1);

is(system('sh', "$root/docker/web.sh", $web), 0, 'docker/web.sh');

for my $page (map { s!^page/!!r } grep { m!^page/! } @files) {
	my %loaded;
	my @next = ('index.html', 'icon.svg', 'app.js', 'page/' . $page,
		map { s!.*/!!r } glob("$web/*.css"));

	push @next, 'lib/marked.js', 'lib/purify.js'
		if $page =~ /^(?:repo|tree|file|edit)/;

	while (defined(my $file = shift @next)) {
		next if exists $loaded{$file};

		my $text = slurp("$web/$file");

		$loaded{$file} = length(Compress::Zlib::memGzip($text));

		while ($text =~ /^(?:import|.*\bfrom) "(\.[^"]*)"/mg) {
			my $path = (dirname($file) eq '.' ? ''
				: dirname($file) . '/') . $1;

			1 while $path =~ s!(^|/)\./!$1!
				|| $path =~ s![^/.]+/\.\./!!;
			push @next, $path;
		}
	}

	my $sum = 0;

	$sum += $_ for values %loaded;

	cmp_ok($sum, '<=', 100_000, "$page: bytes, compressed, of "
		. keys(%loaded) . ' files');
}

# --------------------------------------------------------------------------
# the parsers

SKIP: {
	skip 'no node', 1 if system("$node --version >/dev/null 2>&1") != 0;

	my ($status, $out) = run_command([ $node, '--test', "$root/t/web/" ]);

	is($status, 0, 'node --test t/web/') or diag($out);
}

done_testing();

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The web pages: their imports, no function that parses HTML, and their parsers
# of files in Node, by the tests in t/web.

use warnings;
use strict;

use Test::More;

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
# the parsers

SKIP: {
	skip 'no node', 1 if system("$node --version >/dev/null 2>&1") != 0;

	my ($status, $out) = run_command([ $node, '--test', "$root/t/web/" ]);

	is($status, 0, 'node --test t/web/') or diag($out);
}

done_testing();

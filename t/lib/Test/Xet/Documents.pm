package Test::Xet::Documents;

# Copyright (C) the ngx_http_xet_module authors

# For tests that run the commands of a document and compare what they print:
#
#     like($out, expected($block), 'the command prints');
#
# Both are texts of characters, not of bytes; the names of tests may be, too.

use warnings;
use strict;
use utf8;

use parent 'Exporter';

use Test::More ();

our @EXPORT = qw/ expected /;

binmode(Test::More->builder()->$_(), ':utf8')
	for qw/ output failure_output todo_output /;

# "…" matches anything within a line; a line with only "…" matches any lines.

sub expected {
	my ($text) = @_;

	my $re = join('', map {
		$_ eq "…\n" ? '(?:.*\n)*?' : quotemeta($_) =~ s/\\?…/.*/gr
	} $text =~ /(.*\n)/g);

	return qr/\A$re\z/;
}

1;

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The documents match the code: directives, routes, error codes, log lines and
# files are all documented, and everything documented exists.  Claims about
# security have tests, configurations load, and examples run and print what the
# document says.
#
# A comment <!-- MARK --> above a fenced block says how to test the block:
#
#     test           sh, python or perl: must run with exit status 0
#     output         output of the previous block; "…" is any text in a line
#     nginx: LEVEL   a part of a configuration, at http or server level, or for
#                    a location; an nginx block without a mark is a complete
#                    nginx.conf
#     recipe: NAME   sh, or nginx at http level: the blocks run one after the
#                    other; docs/howto/tls.md continues the recipes of
#                    docs/access.md
#     package: NAME  sh: t/ops/package.t runs it
#     cors           json, the CORS rules of a bucket: t/s3/cors.t uses it
#     quickstart     sh: t/ops/quickstart.t runs it
#     howto          sh: t/ops/howto.t runs it; "howto: NAME" needs a program
#
# Every nginx block is tested.  The blocks of a document run in order, in one
# shell in an empty folder, with ENDPOINT, CONNINFO and STORE set; runuser is a
# function there, since tests need not run as root.  A recipe runs on a new
# server, with TOKEN set.

use warnings;
use strict;
use utf8;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/
	build_dir module_table reap root run_command slurp spawn spew
/;

use Encode qw/ decode encode /;
use File::Spec ();
use File::Temp qw/ tempdir /;

binmode(Test::More->builder()->$_(), ':utf8')
	for qw/ output failure_output todo_output /;

my $root = root();
my $http = "$root/src/http";

my @docs = map { s!^\Q$root/!!r }
	"$root/README.md", sort(glob("$root/docs/*.md")),
	sort(glob("$root/docs/howto/*.md")), "$root/t/README.md";
my %doc = map { $_ => text($_) } @docs;

my $module = text('src/http/module/ngx_http_xet_module.c')
	. text('src/ztensor/http/ngx_http_xet_ztensor_module.c');
my $merges = text('src/http/module/ngx_http_xet_conf.c')
	. text('src/ztensor/http/ngx_http_xet_ztensor_module.c');

sub text {
	return decode('UTF-8', slurp("$root/$_[0]"));
}

# C source without its comments

sub code {
	return join("\n", map { text(s!^\Q$root/!!r) =~ s!/\*.*?\*/!!gsr } @_);
}

my @http = map { glob("$_/*.c") } "$http/*", "$root/src/ztensor/http";
my $code = code(@http);
my $sql = join('', map { text(s!^\Q$root/!!r) } glob("$root/sql/*.sql"));
my $core = code(glob("$root/src/core/*/*.c $root/src/ztensor/core/*.c"));

# Compares two sets of names, and reports names that only one set has.

sub same {
	my ($is, $said, $name) = @_;

	my @untold = grep { !exists $said->{$_} } sort keys %$is;
	my @gone = grep { !exists $is->{$_} } sort keys %$said;
	my @other = grep { exists $said->{$_} && $said->{$_} ne $is->{$_} }
		sort keys %$is;

	ok(keys %$is, "$name: not empty");
	is("@untold", '', "$name: all are documented");
	is("@gone", '', "$name: all documented ones exist");
	is(join(', ', map { "$_: $said->{$_}, is $is->{$_}" } @other), '',
		"$name: documented values are right");
}

# --------------------------------------------------------------------------
# directives

my %commands;

while ($module =~ /\{ \s* ngx_string\("(xet_\w+)"\), \s*
	([A-Z0-9_|\s]+), \s* (\w+), \s* (\w+), \s*
	(?: offsetof\(\w+, \s* ([\w.]+)\) | 0 )/gx)
{
	my ($name, $flags, $field) = ($1, $2, $5);

	$commands{$name} = {
		context => join(', ', map { $flags =~ /$_->[0]/ ? $_->[1] : () }
			[ 'NGX_HTTP_MAIN_CONF', 'http' ],
			[ 'NGX_HTTP_SRV_CONF', 'server' ],
			[ 'NGX_HTTP_LOC_CONF', 'location' ],
			[ 'NGX_HTTP_LIF_CONF', 'if in location' ]),
		none => $flags =~ /NGX_CONF_NOARGS/
			&& $flags !~ /NGX_CONF_(?:TAKE|FLAG|1MORE)/,
		default => scalar(default_of($field))
	};
}

for my $row (@{ module_table('directives') }) {
	$commands{$row->{name}} = {
		context => $row->{context},
		none => '',
		default => scalar(value_c($row->{default}, $row->{kind}))
	};
}

# Returns the default that a merge or init function of the configuration sets.

sub default_of {
	my ($field) = @_;

	return undef unless defined $field;

	# a member of a struct in the configuration

	$field =~ s/^\w+\.//;

	return undef unless $merges =~ /ngx_conf_(?:merge|init)_ (\w*?)_?value\(
			[^,;]*? \b$field, \s* (?:prev->$field, \s*)?
			([^;]+) \);/x;

	return value_c($2, uc($1));
}

# Converts a value in C: a number, an enumeration constant, or a string.

sub value_c {
	my ($value, $kind) = @_;

	return $1 if $value =~ /^"(.+)"$/;
	return $1 if $value =~ /^[A-Z]\w+$/ && $module =~
		/\{ ngx_string\("(\w+)"\), $value \}/;
	return undef unless $value =~ m!^[\d\s*+()]+$!;

	my $n = eval($value);
	return $kind eq 'MSEC' ? $n / 1000 : $n;
}

# Parses a value as nginx does; times are in seconds.

my %units = (ms => 0.001, s => 1, m => 60, h => 3600, d => 86400);
my %sizes = (k => 1024, m => 1048576, g => 1 << 30);

sub value_of {
	my ($text, $like) = @_;

	return $text if defined $like && $text eq $like;
	return $text eq 'on' ? 1 : 0 if $text =~ /^(?:on|off)$/;
	return $text unless $text =~ /^(\d+)(ms|[smhdkg])?$/;
	return $1 unless defined $2;

	for my $units (\%units, \%sizes) {
		my $n = exists $units->{$2} ? $1 * $units->{$2} : next;
		return $n if !defined $like || $n == $like;
	}

	return $text;
}

my %described;

while ($doc{'docs/directives.md'} =~ /^\#\#\#[ ](\w+)\n\n
	```text\n (Syntax:.*?) ```/gmsx)
{
	my ($name, $block) = ($1, $2);
	my %o = $block =~ /^(Syntax|Default|Context):\s+
		(.*?)\s*(?=^\w+:|\z)/gmsx;

	ok(!exists $described{$name}, "$name: described once");
	$described{$name} = \%o;

	like($o{Syntax} // '', qr/^$name(?: [^;]+)?;(?:\s+$name [^;]+;)*$/s,
		"$name: Syntax");
	ok(length($o{Default} // ''), "$name: Default");
	ok(length($o{Context} // ''), "$name: Context");
}

same({ map { $_ => $commands{$_}{context} } keys %commands },
	{ map { $_ => $described{$_}{Context} // '' } keys %described },
	'directives');

for my $name (sort grep { $commands{$_} } keys %described) {
	my ($is, $said) = ($commands{$name}, $described{$name});

	is($said->{Syntax} eq "$name;" ? 'none' : 'some',
		$is->{none} ? 'none' : 'some', "$name: arguments");

	# a directive without arguments is off if it is absent

	if ($is->{none}) {
		is($said->{Default}, "\x{2014}", "$name: default");

	} elsif (defined $is->{default}) {
		is(value_of($said->{Default}, $is->{default}), $is->{default},
			"$name: default");
	}

	like($doc{'docs/directives.md'}, qr/\(#$name\)/,
		"$name: in the table of contents");
}

# parameters of xet_postgres, with bounds and defaults

my (%params, %told);

for my $row (@{ module_table('postgres') }) {
	my ($name, $min, $max) = @$row{qw/ name min max /};
	my $unit = $row->{kind} eq 'MSEC' ? 1000 : 1;
	my @words = $row->{must} =~ /^a \w+ from (\w+) to (\w+)$/;

	is(join(' ', map { $unit * value_of($_) } @words), "$min $max",
		"$name: bounds in the error message");

	$params{$name} = join(' ', map { $_ / $unit }
		$row->{default}, $min, $max);
}

while ($doc{'docs/directives.md'} =~ /^\| `(\w+)` \| (\w+) \| (\w+) to (\w+)/mg)
{
	$told{$1} = join(' ', map { value_of($_) } $2, $3, $4);
}

same(\%params, \%told, 'parameters of xet_postgres');

# variables

my $variables = text('src/http/module/ngx_http_xet_variables.c');
my %variables = map { $_ => '' } $variables
	=~ /\{ ngx_string\("(\w+)"\), NULL,\s+\w+/g;

same(\%variables, { map { $_ => '' } $doc{'docs/directives.md'}
	=~ /^\| `\$(\w+)` \|/mg }, 'variables');

# --------------------------------------------------------------------------
# routes: name with its arguments -> methods -> versions

my %parts = (hash => '{}', prefix => '{prefix}', grant => '{id}');
my (%routes, %listed);

for my $row (@{ module_table('routes') }) {
	my $route = $row->{form} =~ s/:(\w+)/$parts{$1} \/\/ ":$1"/ger;

	unlike($route, qr/:/, "$row->{form}: arguments that this test knows");

	$routes{"$_ $route"} = join(', ',
		map { $_ eq '' ? '–' : $_ } @{ $row->{versions} })
		for @{ $row->{methods} };
}

while ($doc{'docs/api.md'} =~
	/^\|[ ]([A-Z, ]+)[ ]\|[ ]`([\w-]+)([^`]*)`[ ]\|[ ]([^|]+?)[ ]\|/mgx)
{
	my ($methods, $name, $args, $versions) = ($1, $2, $3, $4);

	$args =~ s/\{(?!prefix)\w+\}/{}/;
	$listed{"$_ $name$args"} = $versions for split(/, /, $methods);
}

same(\%routes, \%listed, 'routes');

# --------------------------------------------------------------------------
# error codes with their statuses

my %names = (BAD_REQUEST => 400, UNAUTHORIZED => 401, FORBIDDEN => 403,
	NOT_FOUND => 404, NOT_ALLOWED => 405, CONFLICT => 409,
	REQUEST_ENTITY_TOO_LARGE => 413, MISDIRECTED_REQUEST => 421,
	UNSUPPORTED_MEDIA_TYPE => 415,
	TOO_MANY_REQUESTS => 429, INTERNAL_SERVER_ERROR => 500,
	NOT_IMPLEMENTED => 501, SERVICE_UNAVAILABLE => 503);
my %codes;

my $status_h = text('src/core/base/xet_base.h');

while ($status_h =~ /X\((\w+), \s* "(\w+)", \s* (\d+),/gx) {
	$codes{$2}{$3} = 1 unless $1 =~ /^(?:OK|AGAIN|DONE)$/;
}

# calls with a status; a query that returns no row gives 404

while ($code =~ /ngx_http_xet_\w+\(\s* \w+, \s* (?:\.status \s = \s)?
	(NGX_HTTP_\w+|\d+), \s* (?:\.code \s = \s)? "(\w+)"/gx)
{
	my ($name, $error) = ($1, $2);

	$codes{$error}{$names{$name =~ s/^NGX_HTTP_//r} // $name} = 1;
}

while ($code =~ /ngx_http_xet_query_(?:error|answer)\(\s* \w+, \s* \w+, \s*
	(?:\w+, \s*)? "(\w+)"/gx)
{
	$codes{$1}{404} = 1;
}

while ($code =~ /\{ \s* (\d\d\d), \s* "(\w+)", \s* "[^"]+" \s* \}/gx) {
	$codes{$2}{$1 == 494 ? 400 : $1} = 1;
}

# Hub errors that PostgreSQL returns

while ($sql =~ /(?:status := |hub_says\()(\d\d\d)[;,]\s+(?:code := )?'(\w+)'/g)
{
	$codes{$2}{$1} = 1;
}

while ($sql =~ /\bTHEN 200 ELSE (\d\d\d) END,\s+'(\w+)'/g) {
	$codes{$2}{$1} = 1;
}

$codes{$1}{400} = 1 if $code =~ /ngx_str_set\(&answer\.code, "(\w+)"\)/;

while ($code =~ /(NGX_HTTP_\w+)\)\s*\{\s*
	ngx_str_set\(&answer\.code,\s"(\w+)"\)/gx)
{
	my ($name, $error) = ($1, $2);

	$codes{$error}{$names{$name =~ s/^NGX_HTTP_//r} // $name} = 1;
}

my %coded;

while ($doc{'docs/api.md'} =~ /^\| `(\w+)` \| (\d+(?:, \d+)*) \|/mg) {
	$coded{$1} = $2;
}

# a query that returns no row gives 500, not 404, if the server itself is at
# fault

delete $codes{internal_error}{404};

same({ map { $_ => join(', ', sort keys %{ $codes{$_} }) } keys %codes },
	\%coded, 'error codes');

# all error codes in the text must exist

my %spoken = map { $_ => 1 } map { $doc{$_} =~
	/\b\d\d\d `([a-z]+(?:_[a-z]+)+)`/g } @docs;

is(join(' ', grep { !$codes{$_} } sort keys %spoken), '',
	'error codes in the text exist');

# --------------------------------------------------------------------------
# lines in the error log

my %lines;

while ($code =~ /ngx_log_error\( [^;]*? ("xet:.*?") \s* [,)] [^;]* ;/gsx) {
	my $line = $1 =~ s/"\s+"//gr;

	$line =~ s/\\"/"/g;
	$line =~ s/%[a-zA-Z]+/…/g;
	$lines{substr($line, 1, -1)} = '';
}

my %lines_told = map { $_ => '' } $doc{'docs/trouble.md'}
	=~ /^\| `(xet: [^`]*)` \|/mg;

same(\%lines, \%lines_told, 'log lines');

# --------------------------------------------------------------------------
# files

# the folders of src

my %folders = map { $_ => '' } map { s!^\Q$root/!!r } map { chomp; $_ }
	grep { chomp; my @files = glob("$_/*.c"); @files }
	`find $root/src -type d`;
my %folders_told = map { $_ => '' } $doc{'docs/hacking.md'}
	=~ /^\| `(src[^`]*)` \|/mg;

same(\%folders, \%folders_told, 'folders of src');

# relative links and their anchors

for my $name (@docs) {
	my ($dir) = $name =~ m!^(.*/)?!;
	my @bad;

	while ($doc{$name} =~ /\]\(([^)\s]+)\)/g) {
		my ($path, $anchor) = split(/#/, $1, 2);

		next if $1 =~ /^https?:/;

		my $file = $path eq '' ? $name
			: ($dir // '') . $path;
		1 while $file =~ s![^/]+/\.\./!!;

		push @bad, $1 unless -e "$root/$file" && (!defined $anchor
			|| grep { $_ eq $anchor } anchors($file));
	}

	is("@bad", '', "$name: links");
}

# returns the anchors that a web page of the document would have

sub anchors {
	my ($file) = @_;

	my $text = ($doc{$file} // text($file)) =~ s/^```.*?^```//gmsr;

	return map { lc(s/[`*]//gr =~ s/[^\w\s-]//gr) =~ s/ /-/gr }
		$text =~ /^#+ (.*)$/mg;
}

# each page begins with its purpose, and ends with the next page

for my $name (grep { m!^docs/! } @docs) {
	my ($title, $first) = $doc{$name} =~ /\A(\# .+)\n\n([^\n]+)/;

	like($first // '', qr/^[A-Z]/, "$name: its purpose");
	ok($doc{$name} =~ /\n\nNext: [^\n]*\[[^\n]+\n(?:[^\n]+\n)*\z/,
		"$name: the next page");
}

# each how-to page has the same parts, and all of its commands are run

for my $name (grep { m{^docs/howto/(?!README)} } @docs) {
	my ($lines) = $doc{$name} =~ tr/\n//;

	cmp_ok($lines, '<=', 120, "$name: lines");
	like($doc{$name}, qr/^## \Q$_\E$/m, "$name: $_")
		for 'You need', 'Check', 'If it fails';
	is(scalar(() = $doc{$name} =~ /^ *```sh$/mg),
		scalar(() = $doc{$name} =~ /-->\n *```sh$/mg),
		"$name: all commands are run");

	my $file = $name =~ s!.*/!!r;

	like($doc{'docs/howto/README.md'}, qr/\(\Q$file\E\)/,
		"$name: in the index");
}

{
	my ($lines) = $doc{'README.md'} =~ tr/\n//;

	cmp_ok($lines, '<=', 120, 'README.md: lines');
	cmp_ok(-s "$root/docs/repo_page.webp", '<=', 120_000,
		'README.md: the picture of a page');
	like(text('docs/flow.svg'),
		qr/<title [^>]*>[^<]+<.*<desc [^>]*>[^<]+</s,
		'README.md: the picture of the flow is described');
}

# names of functions, tables and files in the text

for my $name (@docs) {
	my @bad;

	while ($doc{$name} =~ /`(ngx_http_xet_\w+|xet_\w+)\(\)?`/g) {
		push @bad, $1 unless $code =~ /\b$1\b/
			|| $core =~ /\b$1\b/;
	}

	while ($doc{$name} =~ m!`((?:src|conf|docker|sql|t|\.ci)/[\w./-]+)`!g) {
		push @bad, $1 unless -e "$root/$1";
	}

	is("@bad", '', "$name: names");
}

# the life of a request: functions without their prefix, and SQL functions

{
	my ($life) = $doc{'docs/hacking.md'}
		=~ /^## The life of a request\n(.*?)^## /ms;
	my @bad;

	for my $name ($life =~ /`([a-z][a-z0-9_]*)`/g) {
		push @bad, $name
			unless $name =~ /^(?:loop|thread|ngx_http_xet_)$/
			|| $code =~ /\bngx_http_xet_$name\(/;
	}

	# the first function of a row is in the file that the row names; "the
	# same" also allows the files of the previous row

	my $row = '';

	for ($life =~ /^\| (?:loop|thread)[^|]*\| (.*)$/mg) {
		my ($where, $what) = split(/ \| /, $_, 2);
		my $files = join('', map { text($_) }
			$where =~ /`(src\/\S+)`/g);

		$row = $where =~ /the same/ ? $row . $files : $files;

		my ($first) = $what =~ /`([a-z][a-z0-9_]*)`/ or next;

		push @bad, "$where: $first"
			unless $row =~ /^ngx_http_xet_$first\(/m;
	}

	for my $name ($life =~ /`xet\.(\w+)`/g) {
		push @bad, "xet.$name" unless $sql =~ /FUNCTION xet\.$name\(/;
	}

	is("@bad", '', 'the life of a request');
}

# references from the sources to the documents

{
	my @bad;

	for (map { glob("$root/src/$_") } qw! */*.[ch] */*/*.[ch] !) {
		my $file = s!^\Q$root/!!r;
		my $text = text($file) =~ s/\n \*? */ /gr;

		while ($text =~ m!(docs/[\w/]+\.md)
			(?:,[ ]([\w ]+?)(?=[.,;:)]))?!gx)
		{
			my ($doc, $part) = ($1, $2);

			push @bad, "$file: $doc" unless $doc{$doc};
			push @bad, "$file: $doc, $part" if defined $part
				&& !grep { $_ eq lc($part) =~ s/ /-/gr }
				anchors($doc);
		}
	}

	is(join(', ', @bad), '',
		'documents and sections that the sources refer to');
}

{
	my %there = map { s!.*/!!r => 1 }
		split(/\n/, `find $root/src $root/t`);
	my @bad;

	for my $file (split(/\n/, `find $root/src -name '*.[ch]'`)) {
		my $text = slurp($file);

		my ($name) = $file =~ m!([^/]+)\z!;

		push @bad, map { "$name: $_" } grep { !$there{$_} }
			$text =~ /\b((?:ngx_http_)?xet_\w+\.[ch])\b/g;
	}

	is(join(', ', @bad), '', 'files named in the sources');
}

# traps in docs/protocol.md: each test listed for a trap names this trap

my %traps = $doc{'docs/protocol.md'} =~ /^\| (\d+) \| .* \| ([^|]*) \|$/mg;

for my $n (sort { $a <=> $b } keys %traps) {
	for my $test ($traps{$n} =~ /`([^`]+)`/g) {
		ok(-e "$root/$test"
			&& text($test) =~ /\btraps? (?:\d+, )*$n\b/,
			"trap $n is in $test");
	}
}

{
	my %used;

	for (glob("$root/t/*/*.t")) {
		my $text = slurp($_);

		while ($text =~ /\btraps? (\d+(?:, \d+)*)/g) {
			$used{$_} = 1 for split(/, /, $1);
		}
	}

	is(join(' ', grep { !exists $traps{$_} } sort keys %used), '',
		'all traps named in tests are in the list');
}

# claims about security: their tests contain the quoted words

{
	my ($claims, @bad) = 0;
	my $table = 0;

	for my $line (split(/\n/, $doc{'docs/security.md'})) {
		$table = $table && $line =~ /^\|/;

		if (!$table || $line =~ /^\|\s*---/) {
			$table ||= $line =~ /\| checked by \|$/;
			next;
		}

		my ($claim, $cell) = $line =~ /^\| (.*) \| (.*) \|$/;
		my $named = 0;

		while ($cell =~ m!`(t/[\w./]+)`: ((?:"[^"]+"(?:, )?)+)!g) {
			my ($file, $words) = ($1, $2);
			my $test = -e "$root/$file" ? text($file) : '';

			for my $text ($words =~ /"([^"]+)"/g) {
				$named++;
				push @bad, "$file: $text"
					if index($test, $text) < 0;
			}
		}

		push @bad, "no test: $claim" unless $named;
		$claims++;
	}

	cmp_ok($claims, '>', 40, 'claims about security');
	is(join("\n", @bad), '', 'claims about security: their tests');
}

# --------------------------------------------------------------------------
# blocks: { language, level, test, text, line }

sub blocks {
	my ($name) = @_;

	my (@blocks, $block, $indent);
	my ($mark, $n) = ('', 0);

	for my $line (split(/\n/, $doc{$name})) {
		$n++;

		if ($block) {
			if ($line =~ /^\s*```\s*$/) {
				push @blocks, $block;
				undef $block;

			} else {
				$block->{text} .= ($line =~ s/^\Q$indent\E//r)
					. "\n";
			}

		} elsif ($line =~ /^\s*<!-- (.*) -->$/) {
			$mark = $1;

		} elsif ($line =~ /^(\s*)```(\w*)/) {
			$indent = $1;
			$block = { language => $2, mark => $mark, text => '',
				name => "$name:$n" };
			$mark = '';

		} elsif ($line =~ /\S/) {
			is($mark, '', "$name:$n: a mark without a block")
				if $mark ne '';
			$mark = '';
		}
	}

	return @blocks;
}

# --------------------------------------------------------------------------
# configurations

my $t = Test::Xet->new(log => 'info', http => <<'EOC',
large_client_header_buffers  8 72k;
EOC
	server => 'location = /metrics { xet_metrics; }');

my $dir = $t->dir();

sub prepare_conf {
	$t->write_file("etc/$_", $t->expand(here(slurp("$root/conf/$_"))))
		for qw/ xet_location.conf xet_bucket.conf xet_hub.conf
			xet_hub_mirror.conf xet_hub_upstream.conf /;

	mkdir("$dir/cache");

	for my $key (qw/ url.key dedup.key /) {
		spew("$dir/etc/$key", $t->read_file($key));
		chmod(0600, "$dir/etc/$key");
	}

	spew("$dir/etc/s3.credentials", "[default]\naws_access_key_id = x\n"
		. "aws_secret_access_key = y\n");
	spew("$dir/etc/token.key", 'token:t1:' . '70' x 32 . "\n");
	chmod(0600, "$dir/etc/token.key");

	my ($status, $out) = run_command([ qw/ openssl req -x509 -newkey
		ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj
		/, '/CN=localhost', '-keyout', "$dir/etc/any.key",
		'-out', "$dir/etc/any.crt" ]);
	is($status, 0, 'certificate') or diag($out);
}

# Replaces the paths and ports of an installed server by those of the test
# server.

sub here {
	my ($text, $etc) = @_;

	my $module = Test::Xet::Nginx::module();

	$text =~ s!^\s*load_module .*ngx_http_xet_module\.so;!
		$module eq '' ? '' : "load_module $module;"!gme;
	$text =~ s!^\s*user .*;!!gm if $> != 0;
	$text =~ s!/run/nginx\.pid!$dir/nginx.pid!g;
	$text =~ s!/var/log/nginx!$dir!g;
	$text =~ s!/var/lib/xet!$dir/store!g;
	$text =~ s!/var/cache/nginx!$dir/cache!g;
	$text =~ s!/etc/nginx/xet/[\w.]+\.(crt|key)(?=;)!
		my $c = $&; my $e = $1;
		$etc || $c =~ m{/(?:url|dedup|token)\.key$}
			? $c : "$dir/etc/any.$e"!ge;
	$text =~ s!/etc/nginx/xet!$etc // "$dir/etc"!ge;
	$text =~ s!listen (?:[\d.]+:)?(\d+)!"listen 127.0.0.1:%%PORT_$1%%"!ge;

	return $text;
}

sub conf_of {
	my ($block) = @_;

	my $text = here($block->{text});
	my ($level) = $block->{mark} =~ /^nginx: (\w+)$/;

	return $text unless defined $level;

	$text = "location /part/ {\n$text}\n" if $level eq 'location';
	$text = "server {\nlisten 127.0.0.1:%%PORT_8080%%;\n$text}\n"
		unless $level eq 'http';

	# a complete configuration sets xet_store itself

	my $xet = $text =~ /^xet_store /m ? '' : '%%XET%%';

	return "%%MAIN%%\nevents { }\nhttp {\n%%HTTP%%\n$xet\n"
		. "$text}\n";
}

sub test_conf {
	my ($block) = @_;

	like($block->{mark}, qr/^(?:nginx: (?:http|server|location))?$/,
		"$block->{name}: mark");

	my ($good, $out) = $t->config_test(encode('UTF-8', conf_of($block)));

	ok($good && $out !~ /\[(?:warn|emerg|alert)\]/,
		"$block->{name}: configuration") or diag($out);
}

# --------------------------------------------------------------------------
# examples

my $python = File::Spec->rel2abs(build_dir() . '/venv/bin/python');
my $has_client = -x $python
	&& (run_command([ $python, '-c', 'import hf_xet' ]))[0] == 0;

# Runs the blocks of a document as one script.

sub run_examples {
	my ($name, @blocks) = @_;

	my $work = tempdir('xet-docs-XXXXXX', TMPDIR => 1, CLEANUP => 1);
	my $pg = $t->pg()->socket_dir();
	my $script = << "EOS";
set -eu
cd $work
runuser() { shift 3; PGHOST=$pg PGUSER=postgres "\$@"; }
EOS
	my $n = 0;

	for my $block (@blocks) {
		my $text = encode('UTF-8', $block->{text});
		$n++;

		$script .= "echo $n > block\n";

		if ($block->{language} eq 'python') {
			spew("$work/$n.py", $text);
			$text = "$python $n.py\n";

		} elsif ($block->{language} eq 'perl') {
			spew("$work/$n.t", $text);
			$text = "$^X -I$root/t/lib $n.t\n";
		}

		$script .= "exec > $n.out 2> $n.err\n$text";
	}

	spew("$work/script", "${script}echo done > block\n");

	local $ENV{ENDPOINT} = $t->url('/api');
	local $ENV{CONNINFO} = $t->conninfo();
	local $ENV{STORE} = $t->store();
	local $ENV{HF_XET_CACHE} = "$work/cache";
	local $ENV{PATH} = File::Spec->rel2abs(build_dir())
		. ":$ENV{PATH}";

	my ($status, $out) = run_command([ 'sh', "$work/script" ]);

	diag($out) if $out ne '';
	check_blocks($work, $status, @blocks);
}

# Checks that each block has run, and that its output is as documented.

sub check_blocks {
	my ($work, $status, @blocks) = @_;

	my $last = slurp("$work/block", 1) // 0;

	$last = $last =~ /^(\d+)/ ? $1 : @blocks + 1;

	for my $i (1 .. @blocks) {
		my $block = $blocks[$i - 1];
		my $got = decode('UTF-8', slurp("$work/$i.out", 1) // '');

		ok($i < $last, "$block->{name}: runs") or diag($i > $last
			? 'not reached' : "status $status: $got"
			. (slurp("$work/$i.err", 1) // ''));

		next unless defined $block->{output};

		my $re = join('.*', map { quotemeta } split(/…/,
			$block->{output} =~ s/\s+\z//r, -1));
		my $url = $t->url('');

		like($got =~ s/\Q$url\E/http:\/\/127.0.0.1:8080/gr
			=~ s/\s+\z//r, qr/\A$re\z/, "$block->{name}: output");
	}
}

# --------------------------------------------------------------------------
# recipes: one shell runs all blocks of a recipe, in a copy of the files that
# "make install" installs

sub run_recipe {
	my ($name, @blocks) = @_;

	my $work = tempdir('xet-recipe-XXXXXX', TMPDIR => 1, CLEANUP => 1);
	my $etc = "$dir/$name";
	my $script = recipe_shell($work, $etc);
	my $n = 0;

	for my $block (@blocks) {
		my $text = encode('UTF-8', recipe_text($block, $etc));
		$n++;

		if ($block->{language} eq 'nginx') {
			spew("$work/$n.conf", $text);
			$text = "cat $work/$n.conf > $dir/nginx.conf\n";
		}

		$script .= "echo $n > block\nexec > $n.out 2> $n.err\n$text";
	}

	spew("$work/script", "${script}echo done > block\n");

	my $pid = spawn([ 'sh', "$work/script" ], dir => $work,
		output => "$work/out");
	my $status;

	wait_for(120, sub {
		if (-e "$work/reload") {
			$t->reload();
			unlink("$work/reload");
		}

		return defined($status = reap($pid, 0));
	});

	check_blocks($work, $status // 'none', @blocks);
}

# Replaces parts that are not available in a test: the service manager, and the
# name of the server.

sub recipe_shell {
	my ($work, $etc) = @_;

	mkdir($etc) or die "$etc: $!\n";
	system('cp', (map { "$dir/etc/$_" } qw/ url.key dedup.key
		xet_location.conf xet_hub.conf /), $etc) == 0
		or die "cp: $?\n";
	spew("$work/.curlrc", 'resolve = "cas.example.com:' . $t->port(443)
		. ':127.0.0.1"');

	my $nginx = join(' ', $t->nginx()->args());
	my $bin = File::Spec->rel2abs(build_dir());

	return <<"EOS";
set -eu
cd $work
export HOME=$work TOKEN=liked PATH=$bin:\$PATH
nginx() { $nginx "\$\@"; }
systemctl() { : > $work/reload; while [ -e $work/reload ]; do sleep 0.1; done; }
EOS
}

sub recipe_text {
	my ($block, $etc) = @_;

	my $text = here($block->{text}, $etc);
	my $group = (Test::Xet::Nginx::user())[1] // (split(' ', $())[0];

	$text =~ s!127\.0\.0\.1:(80\d\d)!'127.0.0.1:' . $t->port($1)!ge;
	$text =~ s!https://cas\.example\.com!$& . ':' . $t->port(443)!ge;
	$text =~ s!\bwww-data\b!$group!g;

	return $text if $block->{language} eq 'sh';

	return $t->expand("%%MAIN%%\nevents { }\nhttp {\n%%HTTP%%\n%%XET%%\n"
		. $text . <<'EOC');
server {
    listen 127.0.0.1:%%PORT_8081%%;

    location = /check {
        if ($http_authorization = "Bearer liked") {
            return 204;
        }

        return 401;
    }
}
}
EOC
}

# --------------------------------------------------------------------------

prepare_conf();

my (%runs, %recipes);

for my $name (@docs) {
	my $before;

	for my $block (blocks($name)) {
		my $mark = $block->{mark};

		if ($mark =~ /^recipe: (\w+)$/) {
			like($block->{language}, qr/^(?:sh|nginx)$/,
				"$block->{name}: language");

			push @{ $recipes{$1} }, $before = $block;

		} elsif ($mark eq 'cors') {
			is($block->{language}, 'json',
				"$block->{name}: language");

		} elsif ($mark eq 'quickstart') {
			like($name, qr!^docs/(?:quickstart|howto/team)\.md$!,
				"$block->{name}: ops/quickstart.t reads it");
			$before = $block;

		} elsif ($mark =~ /^howto(?:: (.*))?$/) {
			like($name, qr!^docs/howto/!,
				"$block->{name}: ops/howto.t reads it");
			is($block->{language}, 'sh',
				"$block->{name}: language");
			$before = $block;

		} elsif ($mark =~ /^package: (\w+)$/) {
			like(text('t/ops/package.t'), qr/typed\('$1'\)/,
				"$block->{name}: t/ops/package.t runs it");

		} elsif ($block->{language} eq 'nginx') {
			test_conf($block);

		} elsif ($mark eq 'output') {
			ok($before, "$block->{name}: follows a block");
			$before->{output} = $block->{text} if $before;

		} elsif ($mark eq 'test') {
			like($block->{language}, qr/^(?:sh|python|perl)$/,
				"$block->{name}: language");

			undef $before;
			next if $block->{language} eq 'python' && !$has_client;

			push @{ $runs{$name} }, $before = $block;

		} else {
			is($mark, '', "$block->{name}: mark");
		}
	}
}

cmp_ok(scalar(keys %runs), '>=', 3, 'documents with examples');

# examples that run xet gc use a second server, because examples also check the
# health of the first server

my $collector = Test::Xet->new(beside => $t, directives => {
	xet_gc => 'on' });

$t->run();
$collector->run();

run_examples($_, @{ $runs{$_} }) for grep { $runs{$_} } @docs;
run_recipe($_, @{ $recipes{$_} }) for sort keys %recipes;

$t->done();

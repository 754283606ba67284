#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The commands of docs/howto/*.md that are marked with "howto", against a Hub
# with the shipped configuration and tokens, with TLS where a page is about
# certificates.  The blocks of a page run in one shell, in a folder with the
# files that the page assumes.  A block of llama.cpp or Ollama needs the program
# that t/clients/setup.sh builds.
#
# Differences from the documents: the URL, the paths of files, and for Ollama
# the option --insecure, as the page says.

use warnings;
use strict;
use utf8;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Documents;
use Test::Xet::Edge;
use Test::Xet::Fronts;
use Test::Xet::Process qw/
	build_dir free_port reap root run_command slurp spawn spew wait_for
/;
use Test::Xet::Real;
use Test::Xet::S3;
use Test::Xet::Table;

use Encode qw/ decode encode /;
use File::Spec ();
use File::Temp qw/ tempdir /;

my $build = File::Spec->rel2abs(build_dir());
my $clients = File::Spec->rel2abs(Test::Xet::Real::build()) . '/clients';
my %program = (llama => "$clients/llama_cpp/llama",
	ollama => "$clients/ollama/ollama");

plan(skip_all => 'no hf') unless -x "$build/venv/bin/hf";
Test::Xet->folder('the pages begin with a folder');

# --------------------------------------------------------------------------
# a Hub with TLS and without, and another one, which it mirrors

my $far = Test::Xet->new(Test::Xet::Table::hub());

$far->token_key();
$far->run();

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 900);

$t->write_conf(conf());
$t->run();

my $url = $t->url('');
my $dir = $t->dir();
my $tls = 'https://localhost:' . $t->port(8086);
my $s3;
my $token = run('xet', 'token', '--hf', '--key', "$dir/token.key", '--subject',
	'alice', '--scope', 'admin');

fill();

my $edge = Test::Xet::Edge::edge($t);

$edge->run();

for my $file (sort(glob(root() . '/docs/howto/*.md'))) {
	my ($page) = $file =~ m!([^/]+)\.md$!;
	my @blocks = blocks(decode('UTF-8', slurp($file)));

	page($page, @blocks) if @blocks;
}

$edge->check();
$far->check();
$t->allow(qr/ xet: (?:4\d\d) /);
$t->done();

# --------------------------------------------------------------------------

# The shipped configuration with tokens, a mirror, and a second server with TLS.
# done() would report descriptors in open_file_cache as leaked.

sub conf {
	my $text = $t->shipped_conf();

	Test::Xet::Fronts::files($t);
	Test::Xet::Table::mirror($t, $far->url(''), '1s');

	$text =~ s/open_file_cache\w* .*\n//g;
	$text =~ s/xet_auth off;/xet_auth token; xet_require_tls off;
		xet_hub_public on; xet_hub_owners team;
		include %%DIR%%\/xet_hub_upstream.conf;/ or die;

	my ($server) = $text =~ /^(    server \{\n.*?^    \}\n)/ms or die;

	$server =~ s/listen [^;]+;/listen 127.0.0.1:%%PORT_8086%% ssl;
		ssl_certificate %%DIR%%\/tls.pem;
		ssl_certificate_key %%DIR%%\/tls.key;/;
	$server =~ s!http://127\.0\.0\.1:%%PORT_8080%%
		!https://localhost:%%PORT_8086%%!gx;

	return $text =~ s/\}\s*\z/
		include %%DIR%%\/xet_hub_mirror.conf;\n$server}\n/r;
}

sub run {
	my ($program, @args) = @_;

	my ($status, $out) = run_command([ "$build/$program", @args ]);

	die "$program: $out\n" if $status;
	chomp $out;

	return $out;
}

# A GGUF file that Ollama can load.

sub gguf {
	my ($name) = @_;

	my %text = ('general.architecture' => 'llama',
		'general.name' => $name);
	my %number = map { ("llama.$_" => 8) }
		qw/ context_length block_count embedding_length /;

	return 'GGUF' . pack('VQ<Q<', 3, 0, keys(%text) + keys(%number))
		. join('', map { pack('Q</aVQ</a', $_, 8, $text{$_}) }
			sort keys %text)
		. join('', map { pack('Q</aVV', $_, 4, $number{$_}) }
			sort keys %number);
}

# Uploads the repos that exist before a page begins.

sub fill {
	my $from = tempdir(CLEANUP => 1);
	my %repo = ('team/gguf' => { 'model-Q4_K_M.gguf' => gguf('Q4'),
			'model-Q8_0.gguf' => gguf('Q8') },
		'team/model' => { 'README.md' => "# A model\n",
			'model.safetensors' => pack('Q<', 2) . '{}' },
		'google/some' => { 'README.md' => "# Some\n" });

	for my $repo (sort keys %repo) {
		my $name = $repo =~ s!/!-!r;

		mkdir("$from/$name");
		spew("$from/$name/$_", $repo{$repo}{$_})
			for keys %{ $repo{$repo} };

		my $there = $repo =~ /^google/ ? $far->url('') : $url;
		my ($status, $out) = run_command([ "$build/venv/bin/hf",
			'upload', $repo, "$from/$name" ], timeout => 120,
			env => { HF_HOME => "$from/home", HF_TOKEN => $token,
			HF_ENDPOINT => $there });

		is($status, 0, "upload $repo") or diag($out);
	}
}

# Returns the blocks that are marked with "howto": { text, needs, output }.

sub blocks {
	my ($text) = @_;

	my (@found, $last);

	while ($text =~ /^\ *<!--[ ](.+)[ ]-->\n(\ *)```\w+\n((?:.*\n)*?)
		\ *```$/mxg)
	{
		my ($mark, $indent, $block) = ($1, $2, $3);

		$block =~ s/^$indent//mg;

		if ($mark =~ /^howto(?:: (\w+))?$/) {
			push @found, { text => $block, needs => $1 };

		} elsif ($mark eq 'output' && $last =~ /^howto/) {
			$found[-1]{output} = $block;
		}

		$last = $mark;
	}

	return @found;
}

# Runs the blocks of a page.

sub page {
	my ($page, @blocks) = @_;

	SKIP: {
		my ($needs) = map { $_->{needs} // () } @blocks;

		skip("$page: $needs is not built", scalar(@blocks))
			if defined $needs && !-x $program{$needs};

		my $moto = $page eq 's3' ? Test::Xet::S3->missing('moto') : '';

		skip("$page: moto: $moto", scalar(@blocks)) if $moto;

		my $work = folder($page);
		my %env = (environment($page, $work), HOME => $work,
			HF_HUB_DISABLE_UPDATE_CHECK => 1,
			HF_HOME => "$work/home",
			PATH => join(':', $build, "$build/venv/bin",
				map({ s![^/]+\z!!r } values %program),
				$ENV{PATH}));
		my $helper = $page eq 'ollama' ? ollama($work, \%env) : undef;
		my $script = "set -eu\nset -o pipefail\ncd $work\n";

		for my $i (0 .. $#blocks) {
			$script .= "exec > $work/$i.out 2> $work/$i.err\n"
				. here($page, $blocks[$i]{text})
				. ": > $work/$i.done\n";
		}

		spew("$work/script", encode('UTF-8', $script));

		my ($status, $all) = run_command([ 'bash', "$work/script" ],
			env => \%env, timeout => 300);

		check($page, $work, @blocks);
		note($all);

		if ($helper) {
			kill('TERM', $helper);
			reap($helper, 20);
		}
	}
}

sub check {
	my ($page, $work, @blocks) = @_;

	for my $i (0 .. $#blocks) {
		my ($first) = $blocks[$i]{text} =~ /(.{1,60})/;
		my $out = decode('UTF-8', slurp("$work/$i.out", 1) // '');

		ok(-e "$work/$i.done", "$page: $first") or diag($out,
			slurp("$work/$i.err", 1) // 'not reached');
		like($out, expected($blocks[$i]{output}),
			"$page: $first: prints") if defined $blocks[$i]{output};
	}
}

# Replaces what is different in a test.

sub here {
	my ($page, $text) = @_;

	my $to = $page =~ /^(?:team|private_ca)$/ ? $tls : $url;
	my $ca = $page eq 'team' ? "$dir/ca.pem" : '/etc/ssl/certs/'
		. 'ca-certificates.crt';

	$text =~ s!/etc/ssl/certs/ca-certificates\.crt!$ca!g;
	$text =~ s!https://xet\.example\.com!$to!g;
	$text =~ s!(ollama pull) xet\.example\.com!$1 --insecure $url!g;
	$text =~ s!(ollama show) xet\.example\.com!"$1 " . $url =~
		s/^http:..//r!ge;
	$text =~ s!^\. /etc/nginx/xet/env$!:!mg;
	$text =~ s!^BUCKET="[^"]*"$!:!mg;

	return $text;
}

# Creates the folder in which a page is worked through.

sub folder {
	my ($page) = @_;

	my $work = tempdir("howto-$page-XXXXXX", TMPDIR => 1, CLEANUP => 1);

	spew("$work/token", "$token\n");
	spew("$work/ca.pem", slurp("$dir/ca.pem"));
	mkdir("$work/$_") for qw/ home model images /;
	spew("$work/model/model.safetensors", pack('Q<', 2) . '{}');
	spew("$work/images/$_.bin", mix($_, 20_000)) for 1 .. 20;

	return $work;
}

sub environment {
	my ($page, $work) = @_;

	my %pg = (XET_POSTGRES => $t->conninfo(), XET_STORE => $t->store());

	return %pg unless $page =~ /^(?:s3|edges)$/;

	if ($page eq 'edges') {
		my $write = run('xet', 'token', '--key', "$dir/token.key",
			'--repo', 'team/files', '--scope', 'write');
		my $r = $t->http('PUT', '/api/v1/files', { Authorization =>
			"Bearer $write" }, \'through the edge');

		return (ORIGIN => $url, EDGE => $edge->url(''),
			HASH => $r->json()->{hash}, TOKEN => $write);
	}

	$s3 = Test::Xet::S3->new(dir => "$dir/s3");

	return (%pg, BUCKET => join(' ', $s3->url() . '/moved', map {
		"$_=" . $s3->$_() } qw/ endpoint credentials region /)
		. ' path_style');
}

# Starts Ollama's server, which needs no model to pull and show one.

sub ollama {
	my ($work, $env) = @_;

	$env->{OLLAMA_MODELS} = "$work/models";
	$env->{OLLAMA_HOST} = '127.0.0.1:' . free_port();

	my $pid = spawn([ $program{ollama}, 'serve' ],
		output => "$work/log", env => $env);

	ok(wait_for(30, sub { (run_command([ $program{ollama}, 'list' ],
		env => $env))[0] == 0 }), 'Ollama runs');

	return $pid;
}

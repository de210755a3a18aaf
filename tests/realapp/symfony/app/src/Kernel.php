<?php
// The shop as Symfony sees it: two bundles, both languages of fragments, and signed addresses for them below /_fragment.

namespace Shop;

use Shop\Controller\ShopController;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function registerBundles(): iterable
    {
        yield new FrameworkBundle();
        yield new TwigBundle();
    }

    public function getProjectDir(): string
    {
        return \dirname(__DIR__);
    }

    public function getCacheDir(): string
    {
        return getenv('SHOP_VAR').'/cache';
    }

    public function getLogDir(): string
    {
        return getenv('SHOP_VAR').'/log';
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', [
            'secret' => 'only for this run',
            'http_method_override' => false,
            'esi' => true,
            'ssi' => true,
            'fragments' => ['path' => '/_fragment'],
        ]);
        $container->extension('twig', ['strict_variables' => true]);
        $container->services()
            ->defaults()->autowire()->autoconfigure()
            ->set(ShopController::class)->public();
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('esi', '/esi')->controller([ShopController::class, 'esi']);
        $routes->add('ssi', '/ssi')->controller([ShopController::class, 'ssi']);
        $routes->add('prices', '/prices')->controller([ShopController::class, 'prices']);
    }
}
